-- What stands out of the newest days: values that lie two or more robust standard deviations from the usual.
SELECT user_id AS id, day::VARCHAR AS day, metric, value, robust_z_28 AS z
FROM usual_between($from::DATE, $to::DATE)
WHERE abs(robust_z_28) >= 2
ORDER BY user_id, day, metric
