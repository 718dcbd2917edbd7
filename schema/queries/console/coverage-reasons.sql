-- How many cells of people, collections and days are in which state, and why: which path the service has refused tells the collection.
SELECT user_id AS id, state, regexp_replace(coalesce(reason, ''), '[A-Z]+ /\S+: answered', 'answered') AS reason, count(*) AS cells
FROM sync.coverage_between($from, $to)
WHERE day IS NOT NULL AND NOT is_removed AND ($collection::VARCHAR IS NULL OR collection = $collection::VARCHAR)
GROUP BY ALL ORDER BY ALL
