-- The source: readings of three devices, one every ten minutes. Put your own in its place.
SELECT
  timestamp_seconds(1704067200 + id * 600) AS ts,
  id % 3 AS device,
  CAST(id * 7 % 31 AS DOUBLE) AS temperature,
  id % 5 > 0 AS ok
FROM range(432)
