SELECT
  user_id,
  day,
  total_sleep_duration / 3600 AS hours_asleep,
  deep_sleep_duration / 3600 AS hours_deep,
  rem_sleep_duration / 3600 AS hours_rem,
  average_hrv AS hrv,
  lowest_heart_rate,
  night_missing
FROM daily
