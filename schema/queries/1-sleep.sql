-- How did each of them sleep last month?
SELECT user_id,
       count(*)                                      AS nights,
       hhmm(avg(total_sleep_duration))               AS asleep,
       round(avg(deep_sleep_duration) / 60)::INTEGER AS deep_min,
       round(avg(rem_sleep_duration) / 60)::INTEGER  AS rem_min,
       round(avg(efficiency), 1)                     AS efficiency,
       round(avg(average_hrv))::INTEGER              AS hrv
FROM nights
WHERE day > (SELECT max(day) FROM nights) - 30
GROUP BY user_id ORDER BY user_id;
