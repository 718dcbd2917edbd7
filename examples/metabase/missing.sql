-- Which days have no night, and what the ledger knows of them. Table.
-- Variables: person (text), first_day (date).
SELECT
  d.user_id AS person,
  d.day,
  coalesce(c.state, 'not_asked') AS state,
  coalesce(c.reason, CASE WHEN c.state IN ('stored', 'empty') THEN 'the service has no night of this day' END, '') AS reason,
  d.non_wear_share AS "share of the day without the ring"
FROM daily d
LEFT JOIN sync.coverage c ON c.user_id = d.user_id AND c.day = d.day AND c.collection = 'sleep'
WHERE d.night_missing
[[AND d.user_id = {{person}}]]
[[AND d.day >= {{first_day}}]]
ORDER BY d.day DESC, person
