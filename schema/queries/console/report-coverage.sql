-- What is known of the collections that a report draws on beside sleep, by day.
SELECT day::VARCHAR AS day, collection, state, reason
FROM sync.coverage_between($from::DATE, $to::DATE, accounts := [$user])
WHERE collection IN ('daily_activity', 'daily_readiness', 'daily_sleep', 'daily_spo2', 'daily_stress') AND day IS NOT NULL
