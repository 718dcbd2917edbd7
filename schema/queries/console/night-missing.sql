-- What is known of a day that has no night: its collections, and whether the ring was worn.
SELECT c.state, c.reason, d.non_wear_time, d.ring_not_worn, d.activity_unfinished,
  (SELECT count(*) FROM sleep WHERE user_id = $user AND day = $day::DATE AND bedtime_end IS NULL) AS unended
FROM sync.coverage_between($day::DATE, $day::DATE, accounts := [$user]) c
LEFT JOIN (FROM daily WHERE user_id = $user AND day = $day::DATE) d ON true
WHERE c.collection = 'sleep'
