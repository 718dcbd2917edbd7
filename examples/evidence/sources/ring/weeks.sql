SELECT user_id, week, n_average_hrv AS nights, mean_average_hrv AS hrv, stressful_days
FROM weekly
WHERE days_with_stress >= 5 AND mean_average_hrv IS NOT NULL
