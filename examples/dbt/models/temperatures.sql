{{ config(materialized='table') }}
WITH
-- 20 minutes: from events
level_1 AS (
  SELECT
    device AS `device`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 1200000000) AS fw_start,
    fw_epoch,
    min(temperature) AS fw_s0,
    count(temperature) AS fw_s1,
    count(CASE WHEN typeof(temperature) LIKE 'decimal%' THEN temperature END) AS fw_s2,
    sum(CASE WHEN typeof(temperature) LIKE 'decimal%' THEN temperature END) AS fw_s3,
    sum(CASE WHEN NOT typeof(temperature) LIKE 'decimal%' THEN temperature / 1 END) AS fw_s4
  FROM (
    SELECT
      device,
      temperature,
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
    FROM {{ ref('readings') }}
    WHERE
      (
        ok
      ) AND NOT ts IS NULL
  ) AS events
  GROUP BY
    1,
    3,
    4
),
-- 1 hour, 6 hours / 1 hour: from level_1
level_2 AS (
  SELECT
    `device`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) - fw_lag AS fw_start,
    fw_epoch,
    min(`fw_s0`) AS fw_s0,
    sum(`fw_s1`) AS fw_s1,
    sum(`fw_s2`) AS fw_s2,
    CASE WHEN count_if(`fw_s2` > 0 AND `fw_s3` IS NULL) = 0 THEN sum(`fw_s3`) END AS fw_s3,
    sum(`fw_s4`) AS fw_s4
  FROM level_1
  CROSS JOIN VALUES
    (0, 1, 0),
    (1, 3600000000, 0),
    (2, 3600000000, 0),
    (2, 3600000000, 3600000000),
    (2, 3600000000, 7200000000),
    (2, 3600000000, 10800000000),
    (2, 3600000000, 14400000000),
    (2, 3600000000, 18000000000) AS entries(fw_to, fw_slide, fw_lag)
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
    `fw_s0` AS `low`,
    CASE
      WHEN `fw_s1` = 0
      THEN NULL
      WHEN typeof(`fw_s3`) LIKE 'decimal%'
      THEN `fw_s3` / `fw_s1`
      ELSE `fw_s4` / `fw_s1`
    END AS `mean`
  FROM level_2
  JOIN VALUES
    (0, 1200000000, '20 minutes'),
    (1, 3600000000, '1 hour'),
    (2, 21600000000, '6 hours / 1 hour') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `device` AS `device`,
  window_id AS `window_id`,
  window_start AS `window_start`,
  window_end AS `window_end`,
  `low` AS `low`,
  `mean` AS `mean`
FROM computed
