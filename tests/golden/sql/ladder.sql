WITH
-- 1 minute (hidden): from events
level_1 AS (
  SELECT
    0 AS fw_node,
    fw_time - pmod(fw_time, 60000000) AS fw_start,
    fw_epoch,
    count(CASE WHEN typeof(v) LIKE 'decimal%' THEN v END) AS fw_s0,
    sum(v) AS fw_s1
  FROM (
    SELECT
      v,
      CASE typeof(ts)
        WHEN 'timestamp_ntz'
        THEN unix_date(CAST(ts AS DATE)) * CAST(86400000000 AS BIGINT) + hour(ts) * CAST(3600000000 AS BIGINT) + minute(ts) * CAST(60000000 AS BIGINT) + CAST(EXTRACT(SECOND FROM ts) * 1000000 AS BIGINT)
        ELSE unix_micros(CAST(ts AS TIMESTAMP_LTZ))
      END AS fw_time,
      CASE
        WHEN FALSE
        THEN ts + INTERVAL '0' SECOND
        ELSE TIMESTAMP_NTZ '1970-01-01 00:00:00'
      END AS fw_epoch
    FROM r
    WHERE
      NOT ts IS NULL
  ) AS events
  GROUP BY
    2,
    3
),
-- 15 minutes / 1 minute (hidden): from level_1
level_2 AS (
  SELECT
    2 AS fw_node,
    fw_start - pmod(fw_start, 60000000) - fw_lag AS fw_start,
    fw_epoch,
    sum(`fw_s0`) AS fw_s0,
    CASE WHEN count_if(`fw_s0` > 0 AND `fw_s1` IS NULL) = 0 THEN sum(`fw_s1`) END AS fw_s1
  FROM level_1
  CROSS JOIN VALUES
    (0),
    (60000000),
    (120000000),
    (180000000),
    (240000000),
    (300000000),
    (360000000),
    (420000000),
    (480000000),
    (540000000),
    (600000000),
    (660000000),
    (720000000),
    (780000000),
    (840000000) AS entries(fw_lag)
  GROUP BY
    2,
    3
),
-- 1 hour / 1 minute, 1 hour / 10 minutes: from level_2
level_3 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - fw_lag AS fw_start,
    fw_epoch,
    sum(`fw_s0`) AS fw_s0,
    CASE WHEN count_if(`fw_s0` > 0 AND `fw_s1` IS NULL) = 0 THEN sum(`fw_s1`) END AS fw_s1
  FROM level_2
  CROSS JOIN VALUES
    (3, 0, 1),
    (3, 900000000, 1),
    (3, 1800000000, 1),
    (3, 2700000000, 1),
    (4, 0, 600000000),
    (4, 900000000, 600000000),
    (4, 1800000000, 600000000),
    (4, 2700000000, 600000000) AS entries(fw_to, fw_lag, fw_grid)
  WHERE
    pmod(fw_start - fw_lag, fw_grid) = 0
  GROUP BY
    1,
    2,
    3
),
-- every window under its name
computed AS (
  SELECT
    fw_name AS window_id,
    fw_epoch + make_interval(
      0,
      0,
      0,
      0,
      0,
      0,
      (
        fw_start - CASE typeof(fw_epoch)
          WHEN 'timestamp_ntz'
          THEN CAST(0 AS BIGINT)
          ELSE unix_micros(CAST(fw_epoch AS TIMESTAMP_LTZ))
        END
      ) * 0.000001
    ) AS window_start,
    fw_epoch + make_interval(
      0,
      0,
      0,
      0,
      0,
      0,
      (
        (
          fw_start + fw_range
        ) - CASE typeof(fw_epoch)
          WHEN 'timestamp_ntz'
          THEN CAST(0 AS BIGINT)
          ELSE unix_micros(CAST(fw_epoch AS TIMESTAMP_LTZ))
        END
      ) * 0.000001
    ) AS window_end,
    `fw_s1` AS `s`
  FROM level_3
  JOIN VALUES
    (3, 3600000000, '1 hour / 1 minute'),
    (4, 3600000000, '1 hour / 10 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `s` AS `s`
FROM computed
