-- What happened between two moments: sleeps, workouts, sessions, tags and rest modes. A night that is stored again is told once.
SELECT kind, epoch(starts_at) AS start, CASE WHEN ends_at < TIMESTAMP '9999-01-01' THEN epoch(ends_at) END AS "end", name, detail
FROM (
  SELECT 'sleep' AS kind, bedtime_start AS starts_at, bedtime_end AS ends_at, CASE WHEN main THEN 'night' ELSE 'nap' END AS name, NULL AS detail
  FROM counted_sleeps WHERE user_id = $user AND day BETWEEN $day::DATE - 1 AND $day::DATE + 2 AND (main OR nap)
  UNION ALL
  SELECT 'workout', start_datetime, end_datetime, coalesce(activity, 'workout'), label
  FROM workout WHERE user_id = $user AND day BETWEEN $day::DATE - 1 AND $day::DATE + 1
  UNION ALL
  SELECT 'session', start_datetime, end_datetime, coalesce(type, 'session'), mood
  FROM session WHERE user_id = $user AND day BETWEEN $day::DATE - 1 AND $day::DATE + 1
  UNION ALL
  SELECT
    'tag', coalesce(start_time, CASE WHEN start_day = $day::DATE THEN make_timestamp(CAST($start * 1000000 AS BIGINT)) END), end_time,
    coalesce(custom_name, tag_type_code, 'tag'), comment
  FROM enhanced_tag WHERE user_id = $user AND start_day <= $day::DATE + 1 AND coalesce(end_day, start_day) >= $day::DATE - 1
  UNION ALL
  SELECT 'rest_mode', start_time, coalesce(end_time, TIMESTAMP '9999-01-01'), 'rest mode', NULL
  FROM rest_mode_period WHERE user_id = $user AND start_day <= $day::DATE + 1 AND (end_day IS NULL OR end_day >= $day::DATE - 1)
)
WHERE starts_at < make_timestamp(CAST($end * 1000000 AS BIGINT)) AND coalesce(ends_at, starts_at) >= make_timestamp(CAST($start * 1000000 AS BIGINT))
ORDER BY starts_at, kind, name
