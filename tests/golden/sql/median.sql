WITH
-- 10 minutes, 30 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    fw_to AS fw_node,
    fw_time - pmod(fw_time, fw_slide) AS fw_start,
    fw_epoch,
    median(v) AS fw_v0
  FROM (
    SELECT
      k,
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
  CROSS JOIN VALUES
    (0, 600000000),
    (1, 1800000000) AS entries(fw_to, fw_slide)
  GROUP BY
    1,
    2,
    3,
    4
),
-- every window under its name
computed AS (
  SELECT
    `k`,
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
    fw_v0 AS `mid`
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
