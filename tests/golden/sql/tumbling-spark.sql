WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    fw_epoch,
    count(v) AS fw_s0,
    count(CASE WHEN typeof(v) LIKE 'decimal%' THEN v END) AS fw_s1,
    sum(CASE WHEN typeof(v) LIKE 'decimal%' THEN v END) AS fw_s2,
    sum(CASE WHEN NOT typeof(v) LIKE 'decimal%' THEN v / 1 END) AS fw_s3
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
-- 20 minutes: from level_1
level_2 AS (
  SELECT
    `k`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    fw_epoch,
    sum(`fw_s0`) AS fw_s0,
    sum(`fw_s1`) AS fw_s1,
    CASE WHEN count_if(`fw_s1` > 0 AND `fw_s2` IS NULL) = 0 THEN sum(`fw_s2`) END AS fw_s2,
    sum(`fw_s3`) AS fw_s3
  FROM level_1
  CROSS JOIN VALUES
    (0, 1),
    (1, 1200000000) AS entries(fw_to, fw_slide)
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
    CASE
      WHEN `fw_s0` = 0
      THEN NULL
      WHEN typeof(`fw_s2`) LIKE 'decimal%'
      THEN `fw_s2` / `fw_s0`
      ELSE `fw_s3` / `fw_s0`
    END AS `m`
  FROM level_2
  JOIN VALUES
    (0, 600000000, '10 minutes'),
    (1, 1200000000, '20 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  window_start AS `start`,
  `m` AS `m`
FROM computed
