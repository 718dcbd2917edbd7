-- Metabolic equivalents between two moments by 5 minutes, and whether the ring was worn.
SELECT
  epoch_us(ts) // 300000000 * 300 AS start,
  sum(met_minutes) / sum(seconds) FILTER (met IS NOT NULL) * 60 AS met,
  bool_or(class = 'non_wear') AS is_not_worn
FROM met_minutes
WHERE user_id = $user AND day BETWEEN $day::DATE - 2 AND $day::DATE + 1
  AND ts >= make_timestamp(CAST($start * 1000000 AS BIGINT)) AND ts < make_timestamp(CAST($end * 1000000 AS BIGINT))
GROUP BY ALL
ORDER BY start
