WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    sum(v) AS fw_s0,
    count(v) AS fw_s1
  FROM (
    SELECT
      *,
      unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
    FROM r
    WHERE
      NOT ts IS NULL
  ) AS events
  GROUP BY
    1,
    3
),
-- 20 minutes: from level_1
level_2 AS (
  SELECT
    `k`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    sum(`fw_s0`) AS fw_s0,
    sum(`fw_s1`) AS fw_s1
  FROM level_1
  CROSS JOIN VALUES
    (0, 1),
    (1, 1200000000) AS feeds(fw_to, fw_slide)
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
    CASE WHEN `fw_s1` > 0 THEN `fw_s0` / `fw_s1` END AS `m`
  FROM level_2
  JOIN VALUES
    (0, 600000000, '10 minutes'),
    (1, 1200000000, '20 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  window_start AS `start`,
  `m` AS `m`
FROM computed
