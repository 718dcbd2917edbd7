-- The heart rate between two moments by 5 minutes, from all sources.
SELECT
  epoch_us(ts) // 300000000 * 300 AS start,
  min(bpm) AS lowest, median(bpm) AS median, max(bpm) AS highest, count(*) AS measurements, mode(source) AS source
FROM heart_rate_all
WHERE user_id = $user AND ts >= make_timestamp(CAST($start * 1000000 AS BIGINT)) AND ts < make_timestamp(CAST($end * 1000000 AS BIGINT))
GROUP BY ALL
ORDER BY start
