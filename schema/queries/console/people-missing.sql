-- Of whom something of some days could not be read, with a reason.
SELECT user_id AS id, max(reason) AS reason
FROM sync.coverage_between($from::DATE, $to::DATE)
WHERE NOT is_removed AND state IN ('failed', 'suspicious')
GROUP BY user_id
ORDER BY user_id
