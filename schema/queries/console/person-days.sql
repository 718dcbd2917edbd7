-- Whether somebody is known, of which days there is something, and the newest night.
WITH days AS (
  SELECT day FROM sleep WHERE user_id = $user
  UNION ALL SELECT day FROM daily_sleep WHERE user_id = $user
  UNION ALL SELECT day FROM daily_readiness WHERE user_id = $user
  UNION ALL SELECT day FROM daily_activity WHERE user_id = $user
)
SELECT
  a.state,
  (SELECT min(day) FROM days) AS first_day,
  (SELECT max(day) FROM days) AS last_day,
  (SELECT max(day) FROM nights WHERE user_id = $user) AS newest_night
FROM (SELECT state FROM sync.accounts WHERE user_id = $user) a
