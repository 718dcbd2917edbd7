-- The nights of some people by the clock on their wall: minutes from midnight of the day of waking, negative before it.
SELECT
  user_id AS id, day::VARCHAR AS day,
  (epoch(bedtime_start_local) - epoch(day::TIMESTAMP)) / 60 AS start_minute,
  (epoch(bedtime_end_local) - epoch(day::TIMESTAMP)) / 60 AS end_minute
FROM nights
WHERE list_contains($users::JSON::VARCHAR[], user_id) AND day BETWEEN $from::DATE AND $to::DATE
ORDER BY user_id, day
