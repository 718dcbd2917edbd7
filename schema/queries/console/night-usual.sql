-- Each metric of a day against the 28 days before it, and of how many of those there is a value.
SELECT metric, value, median_28, 1.4826 * mad_28 AS spread, robust_z_28 AS z, days_before AS nights
FROM usual_between($day::DATE, $day::DATE)
WHERE user_id = $user
