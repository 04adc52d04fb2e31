WITH
-- 1 hour @ 5 minutes: from events
level_1 AS (
  SELECT
    0 AS fw_node,
    fw_time - pmod((
      fw_time - 300000000
    ), 3600000000) AS fw_start,
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
-- 2 hours @ 5 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod((
      fw_start - fw_offset
    ), fw_slide) AS fw_start,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (0, 1, 0),
    (1, 7200000000, 300000000) AS feeds(fw_to, fw_slide, fw_offset)
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
    (0, 3600000000, '1 hour @ 5 minutes'),
    (1, 7200000000, '2 hours @ 5 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `low` AS `low`
FROM computed
