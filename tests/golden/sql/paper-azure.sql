WITH
-- 10 minutes (hidden): from events
level_1 AS (
  SELECT
    DeviceID AS `DeviceID`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    fw_epoch,
    min(T) AS fw_s0
  FROM (
    SELECT
      DeviceID,
      T,
      CASE typeof(EntryTime)
        WHEN 'timestamp_ntz'
        THEN unix_date(CAST(EntryTime AS DATE)) * CAST(86400000000 AS BIGINT) + hour(EntryTime) * CAST(3600000000 AS BIGINT) + minute(EntryTime) * CAST(60000000 AS BIGINT) + CAST(EXTRACT(SECOND FROM EntryTime) * 1000000 AS BIGINT)
        ELSE unix_micros(CAST(EntryTime AS TIMESTAMP_LTZ))
      END AS fw_time,
      CASE
        WHEN FALSE
        THEN EntryTime + INTERVAL '0' SECOND
        ELSE TIMESTAMP_NTZ '1970-01-01 00:00:00'
      END AS fw_epoch
    FROM Input
    WHERE
      NOT EntryTime IS NULL
  ) AS events
  GROUP BY
    1,
    3,
    4
),
-- 20 min, 40 min, 30 min: from level_1
level_2 AS (
  SELECT
    `DeviceID`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    fw_epoch,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (1, 1200000000),
    (2, 2400000000),
    (3, 1800000000) AS entries(fw_to, fw_slide)
  GROUP BY
    1,
    2,
    3,
    4
),
-- every window under its name
computed AS (
  SELECT
    `DeviceID`,
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
    `fw_s0` AS `min_t`
  FROM level_2
  JOIN VALUES
    (1, 1200000000, '20 min'),
    (2, 2400000000, '40 min'),
    (3, 1800000000, '30 min') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  `DeviceID` AS `DeviceID`,
  window_id AS `w`,
  `min_t` AS `min_t`
FROM computed
