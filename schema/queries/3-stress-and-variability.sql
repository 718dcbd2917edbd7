-- Does heart rate variability fall in weeks with more stress?
SELECT user_id, least(stressful_days, 3) AS stressful_days, count(*) AS weeks,
       round(avg(mean_average_hrv), 1)        AS hrv,
       round(avg(mean_lowest_heart_rate), 1)  AS lowest_heart_rate,
       hhmm(avg(mean_total_sleep_duration))   AS asleep
FROM weekly
WHERE days_with_stress >= 5
GROUP BY ALL ORDER BY ALL;
