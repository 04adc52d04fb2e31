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
-- 1 hour / 1 minute, 1 hour / 10 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) - fw_lag AS fw_start,
    fw_epoch,
    sum(`fw_s0`) AS fw_s0,
    CASE WHEN count_if(`fw_s0` > 0 AND `fw_s1` IS NULL) = 0 THEN sum(`fw_s1`) END AS fw_s1
  FROM level_1
  CROSS JOIN VALUES
    (3, 60000000, 0),
    (3, 60000000, 60000000),
    (3, 60000000, 120000000),
    (3, 60000000, 180000000),
    (3, 60000000, 240000000),
    (3, 60000000, 300000000),
    (3, 60000000, 360000000),
    (3, 60000000, 420000000),
    (3, 60000000, 480000000),
    (3, 60000000, 540000000),
    (3, 60000000, 600000000),
    (3, 60000000, 660000000),
    (3, 60000000, 720000000),
    (3, 60000000, 780000000),
    (3, 60000000, 840000000),
    (3, 60000000, 900000000),
    (3, 60000000, 960000000),
    (3, 60000000, 1020000000),
    (3, 60000000, 1080000000),
    (3, 60000000, 1140000000),
    (3, 60000000, 1200000000),
    (3, 60000000, 1260000000),
    (3, 60000000, 1320000000),
    (3, 60000000, 1380000000),
    (3, 60000000, 1440000000),
    (3, 60000000, 1500000000),
    (3, 60000000, 1560000000),
    (3, 60000000, 1620000000),
    (3, 60000000, 1680000000),
    (3, 60000000, 1740000000),
    (3, 60000000, 1800000000),
    (3, 60000000, 1860000000),
    (3, 60000000, 1920000000),
    (3, 60000000, 1980000000),
    (3, 60000000, 2040000000),
    (3, 60000000, 2100000000),
    (3, 60000000, 2160000000),
    (3, 60000000, 2220000000),
    (3, 60000000, 2280000000),
    (3, 60000000, 2340000000),
    (3, 60000000, 2400000000),
    (3, 60000000, 2460000000),
    (3, 60000000, 2520000000),
    (3, 60000000, 2580000000),
    (3, 60000000, 2640000000),
    (3, 60000000, 2700000000),
    (3, 60000000, 2760000000),
    (3, 60000000, 2820000000),
    (3, 60000000, 2880000000),
    (3, 60000000, 2940000000),
    (3, 60000000, 3000000000),
    (3, 60000000, 3060000000),
    (3, 60000000, 3120000000),
    (3, 60000000, 3180000000),
    (3, 60000000, 3240000000),
    (3, 60000000, 3300000000),
    (3, 60000000, 3360000000),
    (3, 60000000, 3420000000),
    (3, 60000000, 3480000000),
    (3, 60000000, 3540000000),
    (4, 600000000, 0),
    (4, 600000000, 600000000),
    (4, 600000000, 1200000000),
    (4, 600000000, 1800000000),
    (4, 600000000, 2400000000),
    (4, 600000000, 3000000000) AS entries(fw_to, fw_slide, fw_lag)
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
  FROM level_2
  JOIN VALUES
    (3, 3600000000, '1 hour / 1 minute'),
    (4, 3600000000, '1 hour / 10 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `s` AS `s`
FROM computed
