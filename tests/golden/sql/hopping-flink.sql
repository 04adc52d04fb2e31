WITH
-- 5 minutes (hidden): from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 300000000) AS fw_start,
    sum(v) AS fw_s0
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
-- 1 hour / 5 minutes: from level_1
level_2 AS (
  SELECT
    `k`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) - fw_back AS fw_start,
    sum(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (2, 300000000, 0),
    (2, 300000000, 300000000),
    (2, 300000000, 600000000),
    (2, 300000000, 900000000),
    (2, 300000000, 1200000000),
    (2, 300000000, 1500000000),
    (2, 300000000, 1800000000),
    (2, 300000000, 2100000000),
    (2, 300000000, 2400000000),
    (2, 300000000, 2700000000),
    (2, 300000000, 3000000000),
    (2, 300000000, 3300000000) AS feeds(fw_to, fw_slide, fw_back)
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
    `fw_s0` AS `s`
  FROM level_2
  JOIN VALUES
    (2, 3600000000, '1 hour / 5 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  window_start AS `window_start`,
  window_end AS `window_end`,
  `s` AS `s`
FROM computed
