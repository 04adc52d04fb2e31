WITH
-- events
events AS (
  SELECT k AS `k`, v, ts AS fw_time FROM r
),
-- 5 minutes (hidden): from events
node_1 AS (
  SELECT `k`, window_start AS fw_start, window_end AS fw_end, window_time AS fw_time, sum(v) AS fw_s0
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(fw_time), INTERVAL '5' MINUTE))
  GROUP BY `k`, window_start, window_end, window_time
),
-- 1 hour / 5 minutes: from node_1
node_2 AS (
  SELECT `k`, window_start AS fw_start, window_end AS fw_end, window_time AS fw_time, sum(`fw_s0`) AS fw_s0
  FROM TABLE(HOP(TABLE node_1, DESCRIPTOR(fw_time), INTERVAL '5' MINUTE, INTERVAL '1' HOUR))
  GROUP BY `k`, window_start, window_end, window_time
),
-- every window under its name
computed AS (
  SELECT `k`, '1 hour / 5 minutes' AS window_id, fw_start AS window_start, fw_end AS window_end, `fw_s0` AS `s`
  FROM node_2
)
SELECT `k` AS `k`, window_start AS `window_start`, window_end AS `window_end`, `s` AS `s`
FROM computed
