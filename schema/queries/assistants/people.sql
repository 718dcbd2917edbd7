-- Everybody whose data is here, with the nights that there are.
SELECT a.user_id, a.state, a.reason, p.group_name, coalesce(n.nights, 0) AS nights, n.first_night, n.newest_night
FROM sync.accounts a
LEFT JOIN (
  SELECT user_id, count(*) AS nights, min(day) AS first_night, max(day) AS newest_night FROM nights GROUP BY user_id
) n USING (user_id)
LEFT JOIN participants p USING (user_id)
ORDER BY user_id;
