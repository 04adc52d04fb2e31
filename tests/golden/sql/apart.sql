WITH
result0 AS (
  WITH
  -- 10 minutes: from events
  level_1 AS (
    SELECT
      k AS `k`,
      0 AS fw_node,
      fw_time - pmod(fw_time, 600000000) AS fw_start,
      fw_epoch,
      min(v) AS fw_s0
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
            fw_start + 600000000
          ) - CASE typeof(fw_epoch)
            WHEN 'timestamp_ntz'
            THEN CAST(0 AS BIGINT)
            ELSE unix_micros(CAST(fw_epoch AS TIMESTAMP_LTZ))
          END
        ) * 0.000001
      ) AS window_end,
      `fw_s0` AS `x`
    FROM level_1
    JOIN VALUES
      (0, '10 minutes') AS names(fw_shown, fw_name)
      ON fw_node = fw_shown
  )
  SELECT
    `k` AS `k`,
    `x` AS `x`
  FROM computed
),
result1 AS (
  WITH
  -- 20 minutes: from events
  level_1 AS (
    SELECT
      s AS `s`,
      0 AS fw_node,
      fw_time - pmod(fw_time, 1200000000) AS fw_start,
      fw_epoch,
      max(v) AS fw_s0
    FROM (
      SELECT
        s,
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
  -- every window under its name
  computed AS (
    SELECT
      `s`,
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
            fw_start + 1200000000
          ) - CASE typeof(fw_epoch)
            WHEN 'timestamp_ntz'
            THEN CAST(0 AS BIGINT)
            ELSE unix_micros(CAST(fw_epoch AS TIMESTAMP_LTZ))
          END
        ) * 0.000001
      ) AS window_end,
      `fw_s0` AS `max(v)`
    FROM level_1
    JOIN VALUES
      (0, '20 minutes') AS names(fw_shown, fw_name)
      ON fw_node = fw_shown
  )
  SELECT
    `s` AS `s`,
    `max(v)` AS `max(v)`
  FROM computed
)
SELECT
  *
FROM result0
UNION ALL
SELECT
  *
FROM result1
