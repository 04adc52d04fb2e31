WITH
-- 1 hour: from events
level_1 AS (
  SELECT
    0 AS fw_node,
    fw_time - pmod(fw_time, 3600000000) AS fw_start,
    sum(v) AS fw_s0
  FROM (
    SELECT
      *,
      unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
    FROM r
    WHERE
      NOT ts IS NULL AND (
        ok AND v > 0
      )
  ) AS events
  GROUP BY
    2
),
-- every window under its name
computed AS (
  SELECT
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
    `fw_s0` AS `s`
  FROM level_1
  JOIN VALUES
    (0, 3600000000, '1 hour') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
)
SELECT
  window_end AS `e`,
  `s` AS `s`
FROM computed
