-- Everybody who is followed, with the newest night of each.
SELECT
  a.user_id AS id, a.state, a.reason, n.day::VARCHAR AS day, n.total_sleep_duration AS asleep,
  epoch(n.bedtime_start) AS start, n.bedtime_start_offset AS start_offset,
  epoch(n.bedtime_end) AS "end", n.bedtime_end_offset AS end_offset
FROM sync.accounts a
LEFT JOIN (SELECT * FROM nights QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY day DESC) = 1) n USING (user_id)
WHERE a.state <> 'removed'
ORDER BY a.user_id
