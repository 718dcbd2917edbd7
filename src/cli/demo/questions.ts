/** What an analyst would ask first. `user_id` is the account's name; `nights` has the main sleep of each day, `weekly` its weeks. */
export const questions: readonly { question: string; sql: string }[] = [
  {
    question: 'How did each of them sleep last month?',
    sql: `SELECT user_id,
       count(*)                                      AS nights,
       hhmm(avg(total_sleep_duration))               AS asleep,
       round(avg(deep_sleep_duration) / 60)::INTEGER AS deep_min,
       round(avg(rem_sleep_duration) / 60)::INTEGER  AS rem_min,
       round(avg(efficiency), 1)                     AS efficiency,
       round(avg(average_hrv))::INTEGER              AS hrv
FROM nights
WHERE day > (SELECT max(day) FROM nights) - 30
GROUP BY user_id ORDER BY user_id;`,
  },
  {
    question: 'Where is the resting heart rate going?',
    sql: `PIVOT (SELECT user_id, strftime(day, '%Y-%m') AS month, lowest_heart_rate FROM nights)
ON user_id USING round(avg(lowest_heart_rate), 1) GROUP BY month ORDER BY month;`,
  },
  {
    question: 'Does heart rate variability fall in weeks with more stress?',
    sql: `SELECT user_id, least(stressful_days, 3) AS stressful_days, count(*) AS weeks,
       round(avg(mean_average_hrv), 1)        AS hrv,
       round(avg(mean_lowest_heart_rate), 1)  AS lowest_heart_rate,
       hhmm(avg(mean_total_sleep_duration))   AS asleep
FROM weekly
WHERE days_with_stress >= 5
GROUP BY ALL ORDER BY ALL;`,
  },
  {
    question:
      'The heart through the day, by hour of local time: five minutes first, because a workout is measured far more often than rest',
    sql: `WITH zones AS (SELECT user_id, day, any_value(timestamp_offset) AS utc_offset FROM daily_activity GROUP BY ALL),
five_minutes AS (
  SELECT hour(local(h.ts, z.utc_offset)) AS hour, avg(bpm) AS bpm, count(*) AS measurements
  FROM heart_rate h JOIN zones z ON z.user_id = h.user_id AND z.day = h.ts::DATE
  GROUP BY h.user_id, hour, time_bucket(INTERVAL 5 MINUTES, h.ts)
)
SELECT hour, round(avg(bpm), 1) AS bpm, sum(measurements)::BIGINT AS measurements, bar(avg(bpm), 40, 100, 30) AS " "
FROM five_minutes GROUP BY hour ORDER BY hour;`,
  },
];
