-- The main sleep of a day, without a day the newest; what is usual for the person; the naps of the day; why there is no sleep.
SELECT * EXCLUDE (sk) FROM nights WHERE user_id = $user AND ($day IS NULL OR day = $day::DATE) ORDER BY day DESC LIMIT 1;

SELECT metric, unit, value, median_28, mad_28, robust_z_28
FROM baselines
WHERE user_id = $user AND value IS NOT NULL
  AND day = (SELECT max(day) FROM nights WHERE user_id = $user AND ($day IS NULL OR day = $day::DATE))
ORDER BY metric;

SELECT * EXCLUDE (sk)
FROM naps
WHERE user_id = $user AND day = coalesce($day::DATE, (SELECT max(day) FROM nights WHERE user_id = $user))
ORDER BY bedtime_start;

SELECT state, reason, documents
FROM sync.coverage_between($day::DATE, $day::DATE, accounts := [$user])
WHERE collection = 'sleep' AND $day IS NOT NULL;
