WITH
-- 10 minutes (hidden): from events
level_1 AS (
  SELECT
    device AS `device`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    fw_epoch,
    max(t) AS fw_s0,
    min(t) AS fw_s1,
    count(*) AS fw_s2
  FROM (
    SELECT
      device,
      t,
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
    1,
    3,
    4
),
-- 20 minutes, hourly: from level_1
level_2 AS (
  SELECT
    `device`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) - fw_lag AS fw_start,
    fw_epoch,
    max(`fw_s0`) AS fw_s0,
    min(`fw_s1`) AS fw_s1,
    sum(`fw_s2`) AS fw_s2
  FROM level_1
  CROSS JOIN VALUES
    (1, 1200000000, 0),
    (2, 600000000, 0),
    (2, 600000000, 600000000),
    (2, 600000000, 1200000000),
    (2, 600000000, 1800000000),
    (2, 600000000, 2400000000),
    (2, 600000000, 3000000000) AS entries(fw_to, fw_slide, fw_lag)
  GROUP BY
    1,
    2,
    3,
    4
),
-- every window under its name
computed AS (
  SELECT
    `device`,
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
    `fw_s0` AS `value_0`,
    `fw_s1` AS `value_1`,
    `fw_s2` AS `value_2`
  FROM level_2
  JOIN VALUES
    (1, 1200000000, '20 minutes'),
    (2, 3600000000, 'hourly') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `device` AS `device`,
  window_id AS `window_id`,
  window_start AS `window_start`,
  `value_0` - `value_1` AS `spread`
FROM computed
WHERE
  (
    `value_2` > 2
  )
