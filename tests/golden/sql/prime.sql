WITH
-- slices at 15 minutes, 17 minutes, 19 minutes (hidden): from events
level_1 AS (
  SELECT
    1 AS fw_node,
    fw_time - least(pmod(fw_time, 900000000), pmod(fw_time, 1020000000), pmod(fw_time, 1140000000)) AS fw_start,
    min(v) AS fw_s0
  FROM (
    SELECT
      *,
      unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
    FROM r
    WHERE
      NOT ts IS NULL
  ) AS events
  GROUP BY
    2
),
-- 15 minutes, 17 minutes, 19 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (2, 900000000),
    (3, 1020000000),
    (4, 1140000000) AS feeds(fw_to, fw_slide)
  GROUP BY
    1,
    2
),
-- every window under its name
computed AS (
  SELECT
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
    `fw_s0` AS `low`
  FROM level_2
  JOIN VALUES
    (2, 900000000, '15 minutes'),
    (3, 1020000000, '17 minutes'),
    (4, 1140000000, '19 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `low` AS `low`
FROM computed
