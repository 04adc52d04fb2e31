WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    `name` AS `name`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    sum(`v`) AS fw_s0
  FROM (
    SELECT
      *,
      unix_micros(CAST(`ts` AS TIMESTAMP)) AS fw_time
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
    3
),
-- every window under its name
computed AS (
  SELECT
    `name`,
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
    `fw_s0` AS `s`
  FROM level_1
  JOIN VALUES
    (0, 600000000, '10 minutes') AS names(fw_shown, fw_range, fw_name)
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
