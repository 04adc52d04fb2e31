WITH
-- 5 minutes (hidden): from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 300000000) AS fw_start,
    fw_epoch,
    count(CASE WHEN typeof(v) LIKE 'decimal%' THEN v END) AS fw_s0,
    sum(v) AS fw_s1
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
  GROUP BY
    1,
    3,
    4
),
-- 1 hour / 5 minutes: from level_1
level_2 AS (
  SELECT
    `k`,
    2 AS fw_node,
    fw_start - pmod(fw_start, 300000000) - fw_lag AS fw_start,
    fw_epoch,
    sum(`fw_s0`) AS fw_s0,
    CASE WHEN count_if(`fw_s0` > 0 AND `fw_s1` IS NULL) = 0 THEN sum(`fw_s1`) END AS fw_s1
  FROM level_1
  CROSS JOIN VALUES
    (0),
    (300000000),
    (600000000),
    (900000000),
    (1200000000),
    (1500000000),
    (1800000000),
    (2100000000),
    (2400000000),
    (2700000000),
    (3000000000),
    (3300000000) AS entries(fw_lag)
  GROUP BY
    1,
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
          fw_start + 3600000000
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
    (2, '1 hour / 5 minutes') AS names(fw_shown, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  window_start AS `window_start`,
  window_end AS `window_end`,
  `s` AS `s`
FROM computed
