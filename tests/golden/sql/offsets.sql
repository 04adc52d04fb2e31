WITH
-- 1 hour @ 5 minutes: from events
level_1 AS (
  SELECT
    0 AS fw_node,
    fw_time - pmod(fw_time - 300000000, 3600000000) AS fw_start,
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
-- 2 hours @ 5 minutes: from level_1
level_2 AS (
  SELECT
    fw_to AS fw_node,
    fw_start - pmod(fw_start - fw_offset, fw_slide) AS fw_start,
    fw_epoch,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (0, 0, 1),
    (1, 300000000, 7200000000) AS entries(fw_to, fw_offset, fw_slide)
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
    (0, 3600000000, '1 hour @ 5 minutes'),
    (1, 7200000000, '2 hours @ 5 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `low` AS `low`
FROM computed
