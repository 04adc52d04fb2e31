WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    fw_epoch,
    min(v) FILTER(WHERE
      a > 1) AS fw_s0,
    max(v) FILTER(WHERE
      b) AS fw_s1,
    count(*) FILTER(WHERE
      a > 1) AS fw_s2,
    count(*) FILTER(WHERE
      b) AS fw_s3
  FROM (
    SELECT
      k,
      v,
      a,
      b,
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
      (
        (
          a > 1
        ) OR (
          b
        )
      ) AND NOT ts IS NULL
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
    min(`fw_s0`) AS fw_s0,
    max(`fw_s1`) AS fw_s1,
    sum(`fw_s2`) AS fw_s2,
    sum(`fw_s3`) AS fw_s3
  FROM level_1
  CROSS JOIN VALUES
    (0, 1, 1, 1),
    (1, 0, 0, 1200000000) AS entries(fw_to, fw_has_fw_s0, fw_has_fw_s2, fw_slide)
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
    CASE WHEN fw_has_0 = 1 THEN `fw_s0` END AS `x`,
    CASE WHEN fw_has_1 = 1 THEN `fw_s1` END AS `value_1`,
    CASE WHEN fw_has_2 = 1 THEN `fw_s2` END AS `value_2`,
    CASE WHEN fw_has_3 = 1 THEN `fw_s3` END AS `value_3`
  FROM level_2
  JOIN VALUES
    (0, 600000000, 1, 0, 1, 0, '10 minutes'),
    (1, 1200000000, 0, 1, 0, 1, '20 minutes') AS names(fw_shown, fw_range, fw_has_0, fw_has_1, fw_has_2, fw_has_3, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `k` AS `k`,
  CASE window_id WHEN '10 minutes' THEN `x` ELSE `value_1` END AS `x`
FROM computed
WHERE
  CASE window_id
    WHEN '10 minutes'
    THEN (
      `value_2` > 0
    )
    ELSE (
      `value_3` > 0
    )
  END
