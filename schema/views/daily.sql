-- Each table is a branch of `facts` with at most one row for a user and day, so that a filter on user and day reaches all of them. The
-- second key of row_number() is there for that too: with one alone DuckDB finds the rows first and then reads the whole table for them.

CREATE OR REPLACE VIEW daily AS
WITH dated AS (
  SELECT user_id, day FROM daily_sleep
  UNION ALL SELECT user_id, day FROM daily_readiness
  UNION ALL SELECT user_id, day FROM daily_activity
  UNION ALL SELECT user_id, day FROM daily_stress
  UNION ALL SELECT user_id, day FROM daily_resilience
  UNION ALL SELECT user_id, day FROM daily_spo2
  UNION ALL SELECT user_id, day FROM vo2_max
  UNION ALL SELECT user_id, day FROM sleep
  UNION ALL SELECT user_id, day FROM session
),
-- One absurd day must not end the query of everybody: from the year 1 to now there are 740,000 days.
days AS (
  SELECT user_id, CAST(unnest(generate_series(day, least(until, day + 366), INTERVAL 1 DAY)) AS DATE) AS day
  FROM (
    SELECT user_id, day, coalesce(lead(day) OVER (PARTITION BY user_id ORDER BY day) - 1, day) AS until
    FROM (SELECT DISTINCT user_id, day FROM dated)
  )
),
facts AS (
  SELECT user_id, day FROM days
  UNION ALL BY NAME
  SELECT user_id, day, score AS sleep_score
  FROM daily_sleep
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT user_id, day, score AS readiness_score, temperature_deviation, temperature_trend_deviation
  FROM daily_readiness
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT
    user_id, day,
    id AS activity_id, score AS activity_score, steps, equivalent_walking_distance, active_calories, total_calories,
    average_met_minutes, high_activity_time, medium_activity_time, low_activity_time, sedentary_time, resting_time, non_wear_time,
    non_wear_time + resting_time + sedentary_time + low_activity_time + medium_activity_time + high_activity_time AS recorded_time,
    inactivity_alerts
  FROM daily_activity
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT user_id, day, day_summary AS stress_summary, stress_high, recovery_high
  FROM daily_stress
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT user_id, day, level AS resilience_level
  FROM daily_resilience
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT user_id, day, spo2_percentage_average AS spo2_average, breathing_disturbance_index
  FROM daily_spo2
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY sk DESC, id) = 1
  UNION ALL BY NAME
  SELECT
    user_id, day, sleep_id, bedtime_start_local, bedtime_end_local, midpoint_local, offset_change,
    time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
    latency, efficiency, restless_periods, average_heart_rate, lowest_heart_rate, average_hrv, average_breath
  FROM nights
  UNION ALL BY NAME
  SELECT user_id, day, count(*) AS naps, CAST(sum(total_sleep_duration) AS BIGINT) AS nap_duration
  FROM naps
  GROUP BY user_id, day
  UNION ALL BY NAME
  SELECT user_id, day, count(*) AS sessions
  FROM session
  GROUP BY user_id, day
),
joined AS (
  SELECT
    user_id,
    day,
    any_value(sleep_score) AS sleep_score,
    any_value(readiness_score) AS readiness_score,
    any_value(activity_score) AS activity_score,
    any_value(sleep_id) AS sleep_id,
    any_value(bedtime_start_local) AS bedtime_start_local,
    any_value(bedtime_end_local) AS bedtime_end_local,
    any_value(midpoint_local) AS midpoint_local,
    any_value(offset_change) AS offset_change,
    any_value(time_in_bed) AS time_in_bed,
    any_value(total_sleep_duration) AS total_sleep_duration,
    any_value(awake_time) AS awake_time,
    any_value(deep_sleep_duration) AS deep_sleep_duration,
    any_value(light_sleep_duration) AS light_sleep_duration,
    any_value(rem_sleep_duration) AS rem_sleep_duration,
    any_value(latency) AS latency,
    any_value(efficiency) AS efficiency,
    any_value(restless_periods) AS restless_periods,
    any_value(average_heart_rate) AS average_heart_rate,
    any_value(lowest_heart_rate) AS lowest_heart_rate,
    any_value(average_hrv) AS average_hrv,
    any_value(average_breath) AS average_breath,
    any_value(temperature_deviation) AS temperature_deviation,
    any_value(temperature_trend_deviation) AS temperature_trend_deviation,
    coalesce(any_value(naps), 0) AS naps,
    coalesce(any_value(nap_duration), 0) AS nap_duration,
    any_value(spo2_average) AS spo2_average,
    any_value(breathing_disturbance_index) AS breathing_disturbance_index,
    any_value(stress_summary) AS stress_summary,
    any_value(stress_high) AS stress_high,
    any_value(recovery_high) AS recovery_high,
    any_value(resilience_level) AS resilience_level,
    any_value(steps) AS steps,
    any_value(equivalent_walking_distance) AS equivalent_walking_distance,
    any_value(active_calories) AS active_calories,
    any_value(total_calories) AS total_calories,
    any_value(average_met_minutes) AS average_met_minutes,
    any_value(high_activity_time) AS high_activity_time,
    any_value(medium_activity_time) AS medium_activity_time,
    any_value(low_activity_time) AS low_activity_time,
    any_value(sedentary_time) AS sedentary_time,
    any_value(resting_time) AS resting_time,
    any_value(non_wear_time) AS non_wear_time,
    any_value(recorded_time) AS recorded_time,
    any_value(inactivity_alerts) AS inactivity_alerts,
    coalesce(any_value(sessions), 0) AS sessions,
    any_value(activity_id) AS activity_id
  FROM facts
  GROUP BY user_id, day
),
estimates AS (
  SELECT user_id, day, vo2_max
  FROM vo2_max
  WHERE vo2_max IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY timestamp DESC, sk DESC) = 1
)
SELECT
  joined.user_id,
  joined.day,
  joined.sleep_score,
  joined.readiness_score,
  joined.activity_score,
  joined.sleep_id,
  joined.bedtime_start_local,
  joined.bedtime_end_local,
  joined.midpoint_local,
  joined.offset_change,
  joined.time_in_bed,
  joined.total_sleep_duration,
  joined.awake_time,
  joined.deep_sleep_duration,
  joined.light_sleep_duration,
  joined.rem_sleep_duration,
  joined.latency,
  joined.efficiency,
  joined.restless_periods,
  joined.average_heart_rate,
  joined.lowest_heart_rate,
  joined.average_hrv,
  joined.average_breath,
  joined.temperature_deviation,
  joined.temperature_trend_deviation,
  joined.naps,
  joined.nap_duration,
  joined.spo2_average,
  joined.breathing_disturbance_index,
  joined.stress_summary,
  joined.stress_high,
  joined.recovery_high,
  joined.resilience_level,
  estimates.vo2_max,
  estimates.day AS vo2_max_day,
  joined.steps,
  joined.equivalent_walking_distance,
  joined.active_calories,
  joined.total_calories,
  joined.average_met_minutes,
  joined.high_activity_time,
  joined.medium_activity_time,
  joined.low_activity_time,
  joined.sedentary_time,
  joined.resting_time,
  joined.non_wear_time,
  joined.recorded_time,
  joined.inactivity_alerts,
  joined.sessions,
  joined.non_wear_time / nullif(joined.recorded_time, 0) AS non_wear_share,
  joined.non_wear_time * 2 >= nullif(joined.recorded_time, 0) AS ring_not_worn,
  joined.sleep_id IS NULL AS night_missing,
  joined.activity_id IS NULL AS activity_missing
FROM joined ASOF LEFT JOIN estimates ON joined.user_id = estimates.user_id AND joined.day >= estimates.day;
COMMENT ON VIEW daily IS 'One row for each user and day, from the first day of the person’s documents to the last: days of which nothing is known have a row too, of more than 366 on end only the first 366. Where the service has two documents of one kind for a day, the one stored last. The night is the main sleep of nights';
COMMENT ON COLUMN daily.user_id IS 'The account, as named by `account add`';
COMMENT ON COLUMN daily.day IS 'The day, as the service says: a night counts to the day of waking (2.12), an activity to the day on which its 24 hours start at 4 a.m. (2.5)';
COMMENT ON COLUMN daily.sleep_score IS 'Sleep score, of daily_sleep [score, 1 to 100]';
COMMENT ON COLUMN daily.readiness_score IS 'Readiness score, of daily_readiness [score, 1 to 100]';
COMMENT ON COLUMN daily.activity_score IS 'Activity score, of daily_activity [score, 1 to 100]';
COMMENT ON COLUMN daily.sleep_id IS 'Identifier of the main sleep, id of sleep; null when the night is missing';
COMMENT ON COLUMN daily.bedtime_start_local IS 'Start of the time in bed of the main sleep, local time where it started';
COMMENT ON COLUMN daily.bedtime_end_local IS 'End of the time in bed of the main sleep, local time where it ended';
COMMENT ON COLUMN daily.midpoint_local IS 'Middle between start and end of the main sleep, local time where it ended';
COMMENT ON COLUMN daily.offset_change IS 'By how much clocks went forward during the main sleep, by a change of the clock or a flight [s]';
COMMENT ON COLUMN daily.time_in_bed IS 'Time in bed of the main sleep [s]';
COMMENT ON COLUMN daily.total_sleep_duration IS 'Time asleep in the main sleep [s]';
COMMENT ON COLUMN daily.awake_time IS 'Time awake in bed in the main sleep [s]';
COMMENT ON COLUMN daily.deep_sleep_duration IS 'Time of deep sleep in the main sleep [s]';
COMMENT ON COLUMN daily.light_sleep_duration IS 'Time of light sleep in the main sleep [s]';
COMMENT ON COLUMN daily.rem_sleep_duration IS 'Time of REM sleep in the main sleep [s]';
COMMENT ON COLUMN daily.latency IS 'Time needed to fall asleep in the main sleep [s]';
COMMENT ON COLUMN daily.efficiency IS 'Share of time in bed spent asleep in the main sleep [%]';
COMMENT ON COLUMN daily.restless_periods IS 'Number of restless periods in the main sleep [count]';
COMMENT ON COLUMN daily.average_heart_rate IS 'Average heart rate in the main sleep [beats/min]';
COMMENT ON COLUMN daily.lowest_heart_rate IS 'Lowest heart rate in the main sleep, the resting heart rate [beats/min]';
COMMENT ON COLUMN daily.average_hrv IS 'Average heart rate variability in the main sleep, rMSSD [ms]';
COMMENT ON COLUMN daily.average_breath IS 'Average breathing rate in the main sleep [breaths/min]';
COMMENT ON COLUMN daily.temperature_deviation IS 'Deviation of the skin temperature from the person’s usual, of daily_readiness [°C]';
COMMENT ON COLUMN daily.temperature_trend_deviation IS 'Deviation of the skin temperature trend over three days, of daily_readiness [°C]';
COMMENT ON COLUMN daily.naps IS 'Number of naps, the rows of naps [count]';
COMMENT ON COLUMN daily.nap_duration IS 'Time asleep in naps, total_sleep_duration added up; 0 without a nap [s]';
COMMENT ON COLUMN daily.spo2_average IS 'Average oxygen saturation during sleep, of daily_spo2 [%]';
COMMENT ON COLUMN daily.breathing_disturbance_index IS 'Breathing disturbances during sleep, of daily_spo2 [index, 0 to 100]';
COMMENT ON COLUMN daily.stress_summary IS 'The day in one word, day_summary of daily_stress: restored, normal or stressful';
COMMENT ON COLUMN daily.stress_high IS 'Time of high stress, of daily_stress [s]';
COMMENT ON COLUMN daily.recovery_high IS 'Time of high recovery, of daily_stress [s]';
COMMENT ON COLUMN daily.resilience_level IS 'Resilience level, of daily_resilience: limited, adequate, solid, strong or exceptional';
COMMENT ON COLUMN daily.vo2_max IS 'Maximal oxygen uptake as last estimated, on this day or before: carried forward until the next estimate that has a value [ml/kg/min]';
COMMENT ON COLUMN daily.vo2_max_day IS 'Day of the estimate in vo2_max; this day itself where there is a new one';
COMMENT ON COLUMN daily.steps IS 'Steps [count]';
COMMENT ON COLUMN daily.equivalent_walking_distance IS 'Distance on foot that would cost the same energy [m]';
COMMENT ON COLUMN daily.active_calories IS 'Energy spent by moving [kcal]';
COMMENT ON COLUMN daily.total_calories IS 'Energy spent in all [kcal]';
COMMENT ON COLUMN daily.average_met_minutes IS 'Average metabolic equivalent over the day [MET]';
COMMENT ON COLUMN daily.high_activity_time IS 'Time of high activity [s]';
COMMENT ON COLUMN daily.medium_activity_time IS 'Time of medium activity [s]';
COMMENT ON COLUMN daily.low_activity_time IS 'Time of low activity [s]';
COMMENT ON COLUMN daily.sedentary_time IS 'Time of inactivity [s]';
COMMENT ON COLUMN daily.resting_time IS 'Time of rest [s]';
COMMENT ON COLUMN daily.non_wear_time IS 'Time the ring was not worn [s]';
COMMENT ON COLUMN daily.recorded_time IS 'What the six times of the activity come to, non-wear included: 86400 on a whole day, 82800 or 90000 when clocks change, more or less on a flight, less while the day goes on [s]';
COMMENT ON COLUMN daily.inactivity_alerts IS 'Number of inactivity alerts [count]';
COMMENT ON COLUMN daily.sessions IS 'Number of sessions [count]';
COMMENT ON COLUMN daily.non_wear_share IS 'non_wear_time by recorded_time [share, 0 to 1]';
COMMENT ON COLUMN daily.ring_not_worn IS 'Whether the ring was not worn for at least half of recorded_time; null without an activity';
COMMENT ON COLUMN daily.night_missing IS 'Whether the day has no main sleep in nights';
COMMENT ON COLUMN daily.activity_missing IS 'Whether the day has no activity';
