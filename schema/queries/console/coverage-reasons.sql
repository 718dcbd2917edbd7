-- How many cells of people, collections and days are in which state, and why.
SELECT user_id AS id, state, coalesce(reason, '') AS reason, count(*) AS cells
FROM sync.coverage_between($from, $to)
WHERE day IS NOT NULL AND NOT is_removed AND ($collection::VARCHAR IS NULL OR collection = $collection::VARCHAR)
GROUP BY ALL ORDER BY ALL
