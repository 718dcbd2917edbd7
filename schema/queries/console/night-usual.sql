-- Each metric of a day against the 28 days before it, and of how many of those there is a value: as the day before has it.
SELECT
  metric, value, median_28, 1.4826 * mad_28 AS spread, robust_z_28 AS z,
  lag(days_28, 1, 0) OVER (PARTITION BY metric ORDER BY day) AS nights
FROM baselines_between($day::DATE - 1, $day::DATE)
WHERE user_id = $user
QUALIFY day = $day::DATE
