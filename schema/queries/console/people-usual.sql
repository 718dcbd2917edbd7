-- Variability, lowest heart rate and temperature of some people's nights, each against the 28 nights before it.
SELECT user_id AS id, day::VARCHAR AS day, metric, value, median_28 AS median, 1.4826 * mad_28 AS spread
FROM usual_between($from::DATE, $to::DATE)
WHERE list_contains($users::JSON::VARCHAR[], user_id) AND metric IN ('average_hrv', 'lowest_heart_rate', 'temperature_deviation')
ORDER BY user_id, metric, day
