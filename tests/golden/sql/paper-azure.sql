WITH
-- 10 minutes (hidden): from events
level_1 AS (
  SELECT
    DeviceID AS `DeviceID`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    min(T) AS fw_s0
  FROM (
    SELECT
      *,
      unix_micros(CAST(EntryTime AS TIMESTAMP)) AS fw_time
    FROM Input
    WHERE
      NOT EntryTime IS NULL
  ) AS events
  GROUP BY
    1,
    3
),
-- 20 min, 40 min, 30 min: from level_1
level_2 AS (
  SELECT
    `DeviceID`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) AS fw_start,
    min(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (1, 1200000000),
    (2, 2400000000),
    (3, 1800000000) AS feeds(fw_to, fw_slide)
  GROUP BY
    1,
    2,
    3
),
-- every window under its name
computed AS (
  SELECT
    `DeviceID`,
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
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
