WITH
result0 AS (
  WITH
  -- 10 minutes: from events
  level_1 AS (
    SELECT
      k AS `k`,
      0 AS fw_node,
      fw_time - pmod(fw_time, 600000000) AS fw_start,
      min(v) AS fw_s0
    FROM (
      SELECT
        *,
        unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
      FROM r
      WHERE
        NOT ts IS NULL
    ) AS events
    GROUP BY
      1,
      3
  ),
  -- every window under its name
  computed AS (
    SELECT
      `k`,
      fw_name AS window_id,
      timestamp_micros(fw_start) AS window_start,
      timestamp_micros(fw_start + fw_range) AS window_end,
      `fw_s0` AS `x`
    FROM level_1
    JOIN VALUES
      (0, 600000000, '10 minutes') AS names(fw_shown, fw_range, fw_name)
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
      max(v) AS fw_s0
    FROM (
      SELECT
        *,
        unix_micros(CAST(ts AS TIMESTAMP)) AS fw_time
      FROM r
      WHERE
        NOT ts IS NULL
    ) AS events
    GROUP BY
      1,
      3
  ),
  -- every window under its name
  computed AS (
    SELECT
      `s`,
      fw_name AS window_id,
      timestamp_micros(fw_start) AS window_start,
      timestamp_micros(fw_start + fw_range) AS window_end,
      `fw_s0` AS `max(v)`
    FROM level_1
    JOIN VALUES
      (0, 1200000000, '20 minutes') AS names(fw_shown, fw_range, fw_name)
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
