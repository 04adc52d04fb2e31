WITH
-- slices at 17 minutes @ 1 minute, 25 minutes, 25 minutes @ 10 minutes (hidden): from events
level_1 AS (
  SELECT
    1 AS fw_node,
    fw_time - least(
      pmod((
        fw_time - 60000000
      ), 1020000000),
      pmod(fw_time, 1500000000),
      pmod((
        fw_time - 600000000
      ), 1500000000)
    ) AS fw_start,
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
    2
),
-- 17 minutes @ 1 minute, 1 hour / 25 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod((
      fw_start - fw_offset
    ), fw_slide) - fw_back AS fw_start,
    sum(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (2, 1020000000, 60000000, 0, 4611686018427387904),
    (3, 1500000000, 0, 0, 3599999999),
    (3, 1500000000, 0, 1500000000, 3599999999),
    (3, 1500000000, 0, 3000000000, 3599999999) AS feeds(fw_to, fw_slide, fw_offset, fw_back, fw_reach)
  WHERE
    fw_start - (
      fw_start - pmod((
        fw_start - fw_offset
      ), fw_slide) - fw_back
    ) <= fw_reach
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
    `fw_s0` AS `s`
  FROM level_2
  JOIN VALUES
    (2, 1020000000, '17 minutes @ 1 minute'),
    (3, 3600000000, '1 hour / 25 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `s` AS `s`
FROM computed
