-- The query as people write it; models/temperatures.sql is what `factor-windows rewrite` makes of it.
{{ config(materialized='table') }}
SELECT device, window_id, window_start, window_end, min(temperature) AS low, avg(temperature) AS mean
FROM {{ ref('readings') }}
WHERE ok
GROUP BY device, WINDOWS(ts, '20 minutes', '1 hour', '6 hours SLIDE 1 hour')
