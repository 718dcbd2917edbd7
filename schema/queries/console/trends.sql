-- Metrics of a person by day, each against the 28 days before it, and of how many of those there is a value. Not counted: an unfinished day.
SELECT metric, day, value, counted, median_28, 1.4826 * mad_28 AS spread, robust_z_28 AS z, days_before AS nights
FROM usual_between($from::DATE, $to::DATE)
WHERE user_id = $user AND list_contains(string_split($metrics, ','), metric)
ORDER BY metric, day
