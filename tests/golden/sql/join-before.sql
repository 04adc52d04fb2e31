WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    `name` AS `name`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    fw_epoch,
    count(CASE WHEN typeof(`v`) LIKE 'decimal%' THEN `v` END) AS fw_s0,
    sum(`v`) AS fw_s1
  FROM (
    SELECT
      `name`,
      `v`,
      CASE typeof(`ts`)
        WHEN 'timestamp_ntz'
        THEN unix_date(CAST(`ts` AS DATE)) * CAST(86400000000 AS BIGINT) + hour(`ts`) * CAST(3600000000 AS BIGINT) + minute(`ts`) * CAST(60000000 AS BIGINT) + CAST(EXTRACT(SECOND FROM `ts`) * 1000000 AS BIGINT)
        ELSE unix_micros(CAST(`ts` AS TIMESTAMP_LTZ))
      END AS fw_time,
      CASE
        WHEN FALSE
        THEN `ts` + INTERVAL '0' SECOND
        ELSE TIMESTAMP_NTZ '1970-01-01 00:00:00'
      END AS fw_epoch
    FROM (
      SELECT
        i.ts AS `ts`,
        r.name AS `name`,
        v AS `v`
      FROM input AS i
      JOIN ref AS r
        ON i.k = r.k
    ) AS source
    WHERE
      NOT `ts` IS NULL
  ) AS events
  GROUP BY
    1,
    3,
    4
),
-- every window under its name
computed AS (
  SELECT
    `name`,
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
    `fw_s1` AS `s`
  FROM level_1
  JOIN VALUES
    (0, '10 minutes') AS names(fw_shown, fw_name)
    ON fw_node = fw_shown
),
-- what the window aggregates of the query show
result AS (
  SELECT
    `name` AS `name`,
    window_end AS `e`,
    `s` AS `s`
  FROM computed
)
SELECT
  *
FROM result
ORDER BY
  e
