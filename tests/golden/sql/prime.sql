WITH
-- slices at 15 minutes, 17 minutes, 19 minutes (hidden): from events
level_1 AS (
  SELECT
    1 AS fw_node,
    fw_time - least(pmod(fw_time, 900000000), pmod(fw_time, 1020000000), pmod(fw_time, 1140000000)) AS fw_start,
    fw_epoch,
    min(v) AS fw_s0
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
-- 15 minutes, 17 minutes, 19 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    fw_epoch,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (2, 900000000),
    (3, 1020000000),
    (4, 1140000000) AS entries(fw_to, fw_slide)
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
