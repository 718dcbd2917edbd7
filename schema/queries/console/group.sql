-- A metric of some people by day. What an unfinished day has come to is no value of that day.
SELECT id, day, value
FROM (
  SELECT
    user_id AS id, day::VARCHAR AS day,
    CASE
      WHEN activity_unfinished AND $metric IN ('activity_score', 'stress_high', 'steps', 'active_calories') THEN NULL
      ELSE CASE $metric
        WHEN 'average_hrv' THEN average_hrv
        WHEN 'lowest_heart_rate' THEN lowest_heart_rate
        WHEN 'average_heart_rate' THEN average_heart_rate
        WHEN 'average_breath' THEN average_breath
        WHEN 'temperature_deviation' THEN temperature_deviation
        WHEN 'spo2_average' THEN spo2_average
        WHEN 'total_sleep_duration' THEN total_sleep_duration
        WHEN 'deep_sleep_duration' THEN deep_sleep_duration
        WHEN 'rem_sleep_duration' THEN rem_sleep_duration
        WHEN 'efficiency' THEN efficiency
        WHEN 'sleep_score' THEN sleep_score
        WHEN 'readiness_score' THEN readiness_score
        WHEN 'activity_score' THEN activity_score
        WHEN 'stress_high' THEN stress_high
        WHEN 'steps' THEN steps
        WHEN 'active_calories' THEN active_calories
      END
    END::DOUBLE AS value
  FROM daily
  WHERE day BETWEEN $from::DATE AND $to::DATE AND list_contains($users::JSON::VARCHAR[], user_id)
)
-- As in baselines: larger ones are absurd.
WHERE abs(value) < 1e100
ORDER BY id, day
