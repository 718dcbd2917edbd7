/** What an analyst would ask first. `user_id` is the account's name; `type = 'long_sleep'` leaves naps and rejected sleeps out. */
export const questions: readonly { question: string; sql: string }[] = [
  {
    question: 'How did each of them sleep last month?',
    sql: `SELECT user_id,
       count(*)                                      AS nights,
       round(avg(total_sleep_duration) / 3600, 2)    AS hours,
       round(avg(deep_sleep_duration) / 60)::INTEGER AS deep_min,
       round(avg(rem_sleep_duration) / 60)::INTEGER  AS rem_min,
       round(avg(efficiency), 1)                     AS efficiency,
       round(avg(average_hrv))::INTEGER              AS hrv
FROM sleep
WHERE type = 'long_sleep' AND day > (SELECT max(day) FROM sleep) - 30
GROUP BY user_id ORDER BY user_id;`,
  },
  {
    question: 'Where is the resting heart rate going?',
    sql: `PIVOT (SELECT user_id, strftime(day, '%Y-%m') AS month, lowest_heart_rate FROM sleep WHERE type = 'long_sleep')
ON user_id USING round(avg(lowest_heart_rate), 1) GROUP BY month ORDER BY month;`,
  },
  {
    question: 'Does a stressful day cost sleep?',
    sql: `SELECT s.user_id, s.day_summary, count(*) AS days,
       round(avg(n.total_sleep_duration) / 3600, 2) AS hours_next_night,
       round(avg(n.average_hrv), 1)                 AS hrv_next_night
FROM daily_stress s
JOIN sleep n ON n.user_id = s.user_id AND n.day = s.day + 1 AND n.type = 'long_sleep'
WHERE s.day_summary IS NOT NULL
GROUP BY ALL ORDER BY ALL;`,
  },
  {
    question: 'The heart through the day: the mean of every measurement, by hour of local time',
    sql: `WITH zones AS (SELECT user_id, day, any_value(timestamp_offset) AS utc_offset FROM daily_activity GROUP BY ALL)
SELECT hour(h.ts + to_seconds(z.utc_offset)) AS hour,
       round(avg(bpm), 1) AS bpm, count(*) AS measurements, bar(avg(bpm), 40, 100, 30) AS " "
FROM heart_rate h JOIN zones z ON z.user_id = h.user_id AND z.day = h.ts::DATE
GROUP BY hour ORDER BY hour;`,
  },
];
