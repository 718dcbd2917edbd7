-- Days in a row of which the same is known: without days the 31 that end yesterday.
WITH
  yesterday AS (SELECT max(day) AS last FROM sync.coverage),
  known AS (
    SELECT user_id, collection, day, state, reason,
           date_diff('day', DATE '1970-01-01', day)
             - row_number() OVER (PARTITION BY user_id, collection, state, reason ORDER BY day) AS run
    FROM sync.coverage_between(
      coalesce($from::DATE, coalesce($to::DATE, (SELECT last FROM yesterday)) - 30),
      coalesce($to::DATE, (SELECT last FROM yesterday))
    )
    WHERE ($user IS NULL AND NOT is_removed OR user_id = $user) AND ($collection IS NULL OR collection = $collection) AND day IS NOT NULL
  )
SELECT user_id, collection, min(day) AS "from", max(day) AS "to", state, reason
FROM known
GROUP BY user_id, collection, state, reason, run
ORDER BY user_id, collection, "from";
