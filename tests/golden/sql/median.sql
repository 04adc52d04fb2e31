WITH
-- 10 minutes, 30 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    fw_to AS fw_node,
    fw_time - pmod(fw_time, fw_slide) AS fw_start,
    median(v) AS fw_v0
  FROM (
    SELECT
      *,
      unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
    FROM r
    WHERE
      NOT ts IS NULL
  ) AS events
  CROSS JOIN VALUES
    (0, 600000000),
    (1, 1800000000) AS feeds(fw_to, fw_slide)
  GROUP BY
    1,
    2,
    3
),
-- every window under its name
computed AS (
  SELECT
    `k`,
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
    `fw_v0` AS `mid`
  FROM level_1
  JOIN VALUES
    (0, 600000000, '10 minutes'),
    (1, 1800000000, '30 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  `mid` AS `mid`
FROM computed
