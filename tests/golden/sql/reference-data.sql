WITH
-- 10 minutes: from events
level_1 AS (
  SELECT
    k AS `k`,
    0 AS fw_node,
    fw_time - pmod(fw_time, 600000000) AS fw_start,
    count(*) AS fw_s0
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
-- 30 minutes / 10 minutes: from level_1
level_2 AS (
  SELECT
    `k`,
    fw_to AS fw_node,
    fw_start - pmod(fw_start, fw_slide) - fw_back AS fw_start,
    sum(`fw_s0`) AS fw_s0
  FROM level_1
  CROSS JOIN VALUES
    (0, 1, 0),
    (1, 600000000, 0),
    (1, 600000000, 600000000),
    (1, 600000000, 1200000000) AS feeds(fw_to, fw_slide, fw_back)
  GROUP BY
    1,
    2,
    3
),
-- every window under its name
computed AS (
  SELECT
    `k`,
    fw_name AS window_id,
    timestamp_micros(fw_start) AS window_start,
    timestamp_micros(fw_start + fw_range) AS window_end,
    `fw_s0` AS `n`
  FROM level_2
  JOIN VALUES
    (0, 600000000, '10 minutes'),
    (1, 1800000000, '30 minutes / 10 minutes') AS names(fw_shown, fw_range, fw_name)
    ON fw_node = fw_shown
),
-- what the window aggregates of the query show
result AS (
  SELECT
    `k` AS `k`,
    window_end AS `t`,
    `n` AS `n`
  FROM computed
),
counted AS (
  SELECT
    *
  FROM result
)
SELECT
  c.k,
  c.t,
  c.n
FROM counted AS c
JOIN ref
  ON c.k = ref.k
WHERE
  c.n > ref.most
