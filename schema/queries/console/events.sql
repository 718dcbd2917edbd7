-- Events that have their outcome, the newest first.
SELECT
  epoch(received_at) AS received, user_id AS id, event_type AS change, data_type AS kind, outcome, reason,
  greatest(0, epoch(settled_at) - epoch(received_at)) AS lag
FROM sync.events
WHERE ($before IS NULL OR epoch(received_at) < $before::DOUBLE)
  AND ($user::VARCHAR IS NULL OR user_id = $user::VARCHAR)
  AND ($outcome::VARCHAR IS NULL OR outcome = $outcome::VARCHAR)
ORDER BY received_at DESC LIMIT 100
