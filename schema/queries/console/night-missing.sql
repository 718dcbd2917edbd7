-- What is known of days that may have no night: their collection, and whether the ring was worn.
SELECT c.day::VARCHAR AS day, c.state, c.reason, d.non_wear_time, d.ring_not_worn, d.activity_unfinished, coalesce(s.unended, 0) AS unended
FROM sync.coverage_between($from::DATE, $to::DATE, accounts := [$user]) c
LEFT JOIN (FROM daily WHERE user_id = $user AND day BETWEEN $from::DATE AND $to::DATE) d ON d.day = c.day
LEFT JOIN (
  SELECT day, count(*) AS unended
  FROM sleep
  WHERE user_id = $user AND day BETWEEN $from::DATE AND $to::DATE AND bedtime_end IS NULL
  GROUP BY day
) s ON s.day = c.day
WHERE c.collection = 'sleep'
