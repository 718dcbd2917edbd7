-- What is called unusual in the console: two of these four at 2 or more, or anything at 3 or more.
SELECT
  user_id,
  day,
  string_agg(metric || printf(' %+.1f', robust_z_28), ', ' ORDER BY abs(robust_z_28) DESC) AS what
FROM baselines
WHERE abs(robust_z_28) >= 2
GROUP BY user_id, day
HAVING max(abs(robust_z_28)) >= 3
  OR count(*) FILTER (metric IN ('temperature_deviation', 'average_breath', 'average_hrv', 'lowest_heart_rate')) >= 2
