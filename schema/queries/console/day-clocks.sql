-- Since when a person's clock has been which: the first moment of each offset that a document tells.
SELECT epoch(ts) AS start, utc_offset
FROM (
  SELECT bedtime_start AS ts, bedtime_start_offset AS utc_offset FROM sleep WHERE user_id = $user
  UNION ALL SELECT bedtime_end, bedtime_end_offset FROM sleep WHERE user_id = $user
  UNION ALL SELECT timestamp, timestamp_offset FROM daily_activity WHERE user_id = $user
  UNION ALL SELECT start_datetime, start_datetime_offset FROM workout WHERE user_id = $user
  UNION ALL SELECT start_datetime, start_datetime_offset FROM session WHERE user_id = $user
)
WHERE ts IS NOT NULL AND utc_offset IS NOT NULL
QUALIFY utc_offset IS DISTINCT FROM lag(utc_offset) OVER (ORDER BY ts, utc_offset)
ORDER BY ts, utc_offset
