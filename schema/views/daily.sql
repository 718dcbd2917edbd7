-- after: nights
-- Of each table a branch, so that a filter on user and day reaches all of them. What a document says is one value: with a column for each of
-- its fields, grouping takes twice the time and memory. Apart from daily_between: a branch is read even where nobody asks for it, and the
-- metrics of baselines are all of these.
CREATE OR REPLACE MACRO facts_between(first_day, last_day) AS TABLE
WITH estimates AS (
  SELECT user_id, day, vo2_max, day AS vo2_max_day
  FROM vo2_max
  WHERE vo2_max IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY timestamp DESC, sk DESC) = 1
),
dated AS (
  FROM (
    SELECT user_id, day FROM daily_sleep
    UNION ALL SELECT user_id, day FROM daily_readiness
    UNION ALL SELECT user_id, day FROM daily_activity
    UNION ALL SELECT user_id, day FROM daily_stress
    UNION ALL SELECT user_id, day FROM daily_resilience
    UNION ALL SELECT user_id, day FROM daily_spo2
    UNION ALL SELECT user_id, day FROM vo2_max
    UNION ALL SELECT user_id, day FROM sleep
    UNION ALL SELECT user_id, day FROM session
    UNION ALL SELECT user_id, day FROM workout
  )
  WHERE first_day IS NULL OR day >= first_day::DATE - 366
  UNION ALL BY NAME FROM estimates
),
-- One absurd day must not end the query of everybody: from the year 1 to now there are 740,000 days.
days AS (
  SELECT
    user_id, CAST(unnest(generate_series(day, least(until, day + 366), INTERVAL 1 DAY)) AS DATE) AS day, vo2_max, vo2_max_day
  FROM (
    SELECT
      user_id, day,
      coalesce(lead(day) OVER by_day - 1, day) AS until,
      last_value(vo2_max IGNORE NULLS) OVER by_day AS vo2_max,
      last_value(vo2_max_day IGNORE NULLS) OVER by_day AS vo2_max_day
    FROM (
      -- Of the days before the bounds the last one counts, of those behind them that there is one.
      SELECT user_id, max(day) AS day, arg_max(vo2_max, day) AS vo2_max, max(vo2_max_day) AS vo2_max_day
      FROM (
        SELECT user_id, least(day, last_day::DATE + 1) AS day, greatest(least(day, last_day::DATE + 1), first_day::DATE - 1) AS place, vo2_max, vo2_max_day
        FROM dated
      )
      GROUP BY user_id, place
    )
    WINDOW by_day AS (PARTITION BY user_id ORDER BY day)
  )
)
SELECT user_id, day, sk, vo2_max, vo2_max_day, scored, readiness, activity, stress, spo2, night
FROM (
  SELECT user_id, day, vo2_max, vo2_max_day FROM days
  UNION ALL BY NAME
  SELECT user_id, day, sk, {score: score} AS scored FROM daily_sleep
  UNION ALL BY NAME
  SELECT
    user_id, day, sk,
    {score: score, temperature_deviation: temperature_deviation, temperature_trend_deviation: temperature_trend_deviation} AS readiness
  FROM daily_readiness
  UNION ALL BY NAME
  SELECT
    user_id, day, sk,
    {
      id: id, score: score, steps: steps, equivalent_walking_distance: equivalent_walking_distance,
      active_calories: active_calories, total_calories: total_calories, average_met_minutes: average_met_minutes,
      high_activity_time: high_activity_time, medium_activity_time: medium_activity_time, low_activity_time: low_activity_time,
      sedentary_time: sedentary_time, resting_time: resting_time, non_wear_time: non_wear_time, inactivity_alerts: inactivity_alerts,
      recorded_time: recorded_time,
      -- From 4 a.m. to midnight are 72,000 s.
      unfinished: coalesce(
        recorded_time,
        greatest(
          list_sum([non_wear_time, resting_time, sedentary_time, low_activity_time, medium_activity_time, high_activity_time]),
          met_count * met_interval
        )
      ) < 72000
    } AS activity
  FROM (
    SELECT
      *,
      non_wear_time + resting_time + sedentary_time + low_activity_time + medium_activity_time + high_activity_time AS recorded_time
    FROM daily_activity
  )
  UNION ALL BY NAME
  SELECT user_id, day, sk, {day_summary: day_summary, stress_high: stress_high, recovery_high: recovery_high} AS stress
  FROM daily_stress
  UNION ALL BY NAME
  SELECT
    user_id, day, sk,
    {average: spo2_percentage_average, breathing_disturbance_index: breathing_disturbance_index} AS spo2
  FROM daily_spo2
  UNION ALL BY NAME
  SELECT
    user_id, day, sk,
    {
      sleep_id: sleep_id, bedtime_start_local: bedtime_start_local, bedtime_end_local: bedtime_end_local,
      midpoint_local: midpoint_local, offset_change: offset_change, time_in_bed: time_in_bed,
      total_sleep_duration: total_sleep_duration, awake_time: awake_time, deep_sleep_duration: deep_sleep_duration,
      light_sleep_duration: light_sleep_duration, rem_sleep_duration: rem_sleep_duration, latency: latency, efficiency: efficiency,
      restless_periods: restless_periods, average_heart_rate: average_heart_rate, lowest_heart_rate: lowest_heart_rate,
      average_hrv: average_hrv, average_breath: average_breath
    } AS night
  FROM nights
)
WHERE (first_day IS NULL OR day >= first_day::DATE) AND (last_day IS NULL OR day <= last_day::DATE);
COMMENT ON MACRO TABLE facts_between IS 'What daily and baselines are made of, of the days from first_day to last_day, both included: for each day of daily a row, and one for each document of it that has a metric of baselines. Of several documents of one kind the one with the greatest sk counts. Null: no bound';

CREATE OR REPLACE MACRO daily_between(first_day, last_day) AS TABLE
WITH facts AS (
  FROM facts_between(first_day, last_day)
  UNION ALL BY NAME
  SELECT user_id, day, sk, {level: level} AS resilience FROM daily_resilience
  UNION ALL BY NAME
  SELECT user_id, day, sleep_id AS nap, total_sleep_duration AS nap_duration FROM naps
  UNION ALL BY NAME
  SELECT user_id, day, id AS session FROM session
  UNION ALL BY NAME
  SELECT
    user_id, day, id AS workout,
    -- One absurd end must not end the query of everybody.
    CASE WHEN start_datetime IS NOT NULL AND end_datetime IS NOT NULL
      THEN least(greatest(epoch_us(end_datetime) - epoch_us(start_datetime), 0), 86400000000) // 1000000
    END AS workout_duration
  FROM workout
),
joined AS (
  SELECT
    user_id,
    day,
    any_value(vo2_max) AS vo2_max,
    any_value(vo2_max_day) AS vo2_max_day,
    arg_max(scored, sk) AS scored,
    arg_max(readiness, sk) AS readiness,
    arg_max(activity, sk) AS activity,
    arg_max(stress, sk) AS stress,
    arg_max(resilience, sk) AS resilience,
    arg_max(spo2, sk) AS spo2,
    any_value(night) AS night,
    count(nap) AS naps,
    CAST(coalesce(sum(nap_duration), 0) AS BIGINT) AS nap_duration,
    count(session) AS sessions,
    count(workout) AS workouts,
    CAST(coalesce(sum(workout_duration), 0) AS BIGINT) AS workout_duration
  FROM facts
  GROUP BY user_id, day
)
SELECT
  user_id,
  day,
  scored.score AS sleep_score,
  readiness.score AS readiness_score,
  activity.score AS activity_score,
  night.sleep_id,
  night.bedtime_start_local,
  night.bedtime_end_local,
  night.midpoint_local,
  night.offset_change,
  night.time_in_bed,
  night.total_sleep_duration,
  night.awake_time,
  night.deep_sleep_duration,
  night.light_sleep_duration,
  night.rem_sleep_duration,
  night.latency,
  night.efficiency,
  night.restless_periods,
  night.average_heart_rate,
  night.lowest_heart_rate,
  night.average_hrv,
  night.average_breath,
  readiness.temperature_deviation,
  readiness.temperature_trend_deviation,
  naps,
  nap_duration,
  spo2.average AS spo2_average,
  spo2.breathing_disturbance_index,
  stress.day_summary AS stress_summary,
  stress.stress_high,
  stress.recovery_high,
  resilience.level AS resilience_level,
  vo2_max,
  vo2_max_day,
  activity.steps,
  activity.equivalent_walking_distance,
  activity.active_calories,
  activity.total_calories,
  activity.average_met_minutes,
  activity.high_activity_time,
  activity.medium_activity_time,
  activity.low_activity_time,
  activity.sedentary_time,
  activity.resting_time,
  activity.non_wear_time,
  activity.recorded_time AS recorded_time,
  activity.inactivity_alerts,
  sessions,
  workouts,
  workout_duration,
  activity.non_wear_time / nullif(recorded_time, 0) AS non_wear_share,
  activity.unfinished AS activity_unfinished,
  CASE WHEN recorded_time > 0 THEN activity.non_wear_time * 2 >= CASE WHEN activity_unfinished THEN 86400 ELSE recorded_time END END AS ring_not_worn,
  night.sleep_id IS NULL AS night_missing,
  activity.id IS NULL AS activity_missing
FROM joined
WHERE (first_day IS NULL OR day >= first_day::DATE) AND (last_day IS NULL OR day <= last_day::DATE);
COMMENT ON MACRO TABLE daily_between IS 'daily of the days from first_day to last_day, both included: what of daily is the same whatever comes before and after is not computed, so that a short range of everybody is quick. Null: no bound. FROM daily_between(''2025-01-01'', ''2025-01-31'') WHERE user_id = ''ada''';

CREATE OR REPLACE VIEW daily AS
FROM daily_between(NULL, NULL);
-- example of daily: SELECT day, sleep_score, readiness_score, stress_summary, steps FROM daily WHERE user_id = 'ada' ORDER BY day DESC LIMIT 7
COMMENT ON VIEW daily IS 'One row for each user and day, from the first day of the person’s documents, suggested bedtimes, tags, rest modes and ages of vessels aside, to the last: days of which nothing is known have a row too, of more than 366 on end only the first 366. Where the service has two documents of one kind for a day, the one stored last. The night is the main sleep of nights';
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
COMMENT ON COLUMN daily.nap_duration IS 'Time asleep in naps, total_sleep_duration added up where it is known; 0 without a nap [s]';
COMMENT ON COLUMN daily.spo2_average IS 'Average oxygen saturation during sleep, of daily_spo2 [%]';
COMMENT ON COLUMN daily.breathing_disturbance_index IS 'Breathing disturbances during sleep, of daily_spo2 [index, 0 to 100]';
COMMENT ON COLUMN daily.stress_summary IS 'The day in one word, day_summary of daily_stress: restored, normal or stressful';
COMMENT ON COLUMN daily.stress_high IS 'Time of high stress, of daily_stress [s]';
COMMENT ON COLUMN daily.recovery_high IS 'Time of high recovery, of daily_stress [s]';
COMMENT ON COLUMN daily.resilience_level IS 'Resilience level, of daily_resilience: limited, adequate, solid, strong or exceptional';
COMMENT ON COLUMN daily.vo2_max IS 'Maximal oxygen uptake as last estimated, on this day or before: of two estimates of a day the one created later, carried forward until the next estimate that has a value [ml/kg/min]';
COMMENT ON COLUMN daily.vo2_max_day IS 'Day of the estimate in vo2_max; this day itself where there is a new one';
COMMENT ON COLUMN daily.steps IS 'Steps [count]';
COMMENT ON COLUMN daily.equivalent_walking_distance IS 'Distance on foot that would cost the same energy [m]';
COMMENT ON COLUMN daily.active_calories IS 'Energy spent by moving [kcal]';
COMMENT ON COLUMN daily.total_calories IS 'Energy spent in all [kcal]';
COMMENT ON COLUMN daily.average_met_minutes IS 'Average metabolic equivalent over the day; MET, not MET minutes, whatever its name says [MET]';
COMMENT ON COLUMN daily.high_activity_time IS 'Time of high activity [s]';
COMMENT ON COLUMN daily.medium_activity_time IS 'Time of medium activity [s]';
COMMENT ON COLUMN daily.low_activity_time IS 'Time of low activity [s]';
COMMENT ON COLUMN daily.sedentary_time IS 'Time of inactivity [s]';
COMMENT ON COLUMN daily.resting_time IS 'Time of rest [s]';
COMMENT ON COLUMN daily.non_wear_time IS 'Time the ring was not worn [s]';
COMMENT ON COLUMN daily.recorded_time IS 'What the six times of the activity come to, non-wear included: 86400 on a whole day (2.5), also on flights and when clocks change; of a service whose activity lasts from midnight to midnight as long as the day; less while the day goes on; null where one of them is [s]';
COMMENT ON COLUMN daily.inactivity_alerts IS 'Number of inactivity alerts [count]';
COMMENT ON COLUMN daily.sessions IS 'Number of sessions [count]';
COMMENT ON COLUMN daily.workouts IS 'Number of workouts [count]';
COMMENT ON COLUMN daily.workout_duration IS 'Time of workouts, from start to end, added up where both are known, of each a day at most; 0 without a workout [s]';
COMMENT ON COLUMN daily.non_wear_share IS 'non_wear_time by recorded_time; null where that is unknown or 0 [share, 0 to 1]';
COMMENT ON COLUMN daily.activity_unfinished IS 'Whether the activity does not reach midnight yet, as today’s does at noon: recorded_time, or where that is unknown the sum of the known times or the length of the MET samples, whichever is more, is less than 72000 s (4 a.m. to midnight). Then its sums are of a part of the day, and baselines and weekly leave them out. Null without an activity and where neither is known';
COMMENT ON COLUMN daily.ring_not_worn IS 'Whether the ring was not worn for at least 50 % of the day: of recorded_time, and of 86400 s where activity_unfinished. Null without an activity, and where recorded_time is unknown or 0';
COMMENT ON COLUMN daily.night_missing IS 'Whether the day has no main sleep in nights';
COMMENT ON COLUMN daily.activity_missing IS 'Whether the day has no activity';
