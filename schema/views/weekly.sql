-- after: daily
CREATE OR REPLACE VIEW weekly AS
SELECT
  user_id,
  CAST(date_trunc('week', day) AS DATE) AS week,
  any_value(strftime(day, '%G-W%V')) AS iso_week,
  count(*) AS days,
  count(sleep_id) AS nights,
  avg(sleep_score) AS mean_sleep_score,
  count(sleep_score) AS n_sleep_score,
  avg(readiness_score) AS mean_readiness_score,
  count(readiness_score) AS n_readiness_score,
  avg(activity_score) FILTER (WHERE is_whole) AS mean_activity_score,
  count(activity_score) FILTER (WHERE is_whole) AS n_activity_score,
  avg(total_sleep_duration) AS mean_total_sleep_duration,
  count(total_sleep_duration) AS n_total_sleep_duration,
  avg(efficiency) AS mean_efficiency,
  count(efficiency) AS n_efficiency,
  avg(average_hrv) AS mean_average_hrv,
  count(average_hrv) AS n_average_hrv,
  avg(lowest_heart_rate) AS mean_lowest_heart_rate,
  count(lowest_heart_rate) AS n_lowest_heart_rate,
  avg(average_breath) AS mean_average_breath,
  count(average_breath) AS n_average_breath,
  avg(temperature_deviation) AS mean_temperature_deviation,
  count(temperature_deviation) AS n_temperature_deviation,
  CAST(sum(naps) AS BIGINT) AS naps,
  CAST(sum(sessions) AS BIGINT) AS sessions,
  count(stress_summary) FILTER (WHERE is_whole) AS days_with_stress,
  count(*) FILTER (WHERE is_whole AND stress_summary = 'stressful') AS stressful_days,
  count(*) FILTER (WHERE is_whole AND stress_summary = 'restored') AS restored_days,
  avg(stress_high) FILTER (WHERE is_whole) AS mean_stress_high,
  count(stress_high) FILTER (WHERE is_whole) AS n_stress_high,
  avg(recovery_high) FILTER (WHERE is_whole) AS mean_recovery_high,
  count(recovery_high) FILTER (WHERE is_whole) AS n_recovery_high,
  max_by(vo2_max, day) AS vo2_max,
  count(*) FILTER (WHERE is_whole AND NOT activity_missing) AS activity_days,
  count(*) FILTER (WHERE NOT is_whole) AS unfinished_days,
  CAST(sum(steps) FILTER (WHERE is_whole) AS BIGINT) AS steps,
  avg(steps) FILTER (WHERE is_whole) AS mean_steps,
  count(steps) FILTER (WHERE is_whole) AS n_steps,
  CAST(sum(active_calories) FILTER (WHERE is_whole) AS BIGINT) AS active_calories,
  sum(medium_activity_time + high_activity_time) FILTER (WHERE is_whole) / 60 AS active_minutes,
  sum(non_wear_time) FILTER (WHERE is_whole AND recorded_time IS NOT NULL)
    / nullif(sum(recorded_time) FILTER (WHERE is_whole), 0) AS non_wear_share
FROM (SELECT *, NOT coalesce(activity_unfinished, false) AS is_whole FROM daily)
GROUP BY user_id, CAST(date_trunc('week', day) AS DATE);
-- example of weekly: SELECT week, round(mean_average_hrv, 1) AS hrv, stressful_days, active_minutes FROM weekly WHERE user_id = 'ada' ORDER BY week DESC LIMIT 8
COMMENT ON VIEW weekly IS 'One row for each user and ISO week, from daily: means over the days that have a value, how many says the n_ column beside each; sums over the days that are there. What goes on all day (activity, stress) is of whole days: not of one with activity_unfinished in daily, such as today. Filter by user_id and week';
COMMENT ON COLUMN weekly.week IS 'Monday of the ISO week';
COMMENT ON COLUMN weekly.iso_week IS 'ISO year and week, such as 2025-W03';
COMMENT ON COLUMN weekly.days IS 'Days of the week that are rows of daily: 7, or fewer in a person’s first and last week and beside a gap of more than a year [count]';
COMMENT ON COLUMN weekly.nights IS 'Days with a main sleep [count]';
COMMENT ON COLUMN weekly.mean_sleep_score IS 'Mean sleep score [score, 1 to 100]';
COMMENT ON COLUMN weekly.n_sleep_score IS 'Days that mean_sleep_score is of [count]';
COMMENT ON COLUMN weekly.mean_readiness_score IS 'Mean readiness score [score, 1 to 100]';
COMMENT ON COLUMN weekly.n_readiness_score IS 'Days that mean_readiness_score is of [count]';
COMMENT ON COLUMN weekly.mean_activity_score IS 'Mean activity score of whole days [score, 1 to 100]';
COMMENT ON COLUMN weekly.n_activity_score IS 'Whole days that mean_activity_score is of [count]';
COMMENT ON COLUMN weekly.mean_total_sleep_duration IS 'Mean time asleep in the main sleeps [s]';
COMMENT ON COLUMN weekly.n_total_sleep_duration IS 'Main sleeps that mean_total_sleep_duration is of [count]';
COMMENT ON COLUMN weekly.mean_efficiency IS 'Mean share of time in bed spent asleep in the main sleeps [%]';
COMMENT ON COLUMN weekly.n_efficiency IS 'Main sleeps that mean_efficiency is of [count]';
COMMENT ON COLUMN weekly.mean_average_hrv IS 'Mean of the average heart rate variability of the main sleeps, rMSSD [ms]';
COMMENT ON COLUMN weekly.n_average_hrv IS 'Main sleeps that mean_average_hrv is of [count]';
COMMENT ON COLUMN weekly.mean_lowest_heart_rate IS 'Mean of the lowest heart rate of the main sleeps [beats/min]';
COMMENT ON COLUMN weekly.n_lowest_heart_rate IS 'Main sleeps that mean_lowest_heart_rate is of [count]';
COMMENT ON COLUMN weekly.mean_average_breath IS 'Mean of the average breathing rate of the main sleeps [breaths/min]';
COMMENT ON COLUMN weekly.n_average_breath IS 'Main sleeps that mean_average_breath is of [count]';
COMMENT ON COLUMN weekly.mean_temperature_deviation IS 'Mean deviation of the skin temperature from the person’s usual, of daily_readiness [°C]';
COMMENT ON COLUMN weekly.n_temperature_deviation IS 'Days that mean_temperature_deviation is of [count]';
COMMENT ON COLUMN weekly.naps IS 'Number of naps [count]';
COMMENT ON COLUMN weekly.sessions IS 'Number of sessions [count]';
COMMENT ON COLUMN weekly.days_with_stress IS 'Whole days with a stress summary: what stressful_days and restored_days are part of [count]';
COMMENT ON COLUMN weekly.stressful_days IS 'Whole days whose stress summary is stressful [count]';
COMMENT ON COLUMN weekly.restored_days IS 'Whole days whose stress summary is restored [count]';
COMMENT ON COLUMN weekly.mean_stress_high IS 'Mean time of high stress in a whole day [s]';
COMMENT ON COLUMN weekly.n_stress_high IS 'Whole days that mean_stress_high is of [count]';
COMMENT ON COLUMN weekly.mean_recovery_high IS 'Mean time of high recovery in a whole day [s]';
COMMENT ON COLUMN weekly.n_recovery_high IS 'Whole days that mean_recovery_high is of [count]';
COMMENT ON COLUMN weekly.vo2_max IS 'Maximal oxygen uptake as last known at the end of the week, carried forward [ml/kg/min]';
COMMENT ON COLUMN weekly.activity_days IS 'Whole days with an activity: what the sums below are over [count]';
COMMENT ON COLUMN weekly.unfinished_days IS 'Days whose activity is unfinished, activity_unfinished of daily: they are in no mean or sum of activity and stress [count]';
COMMENT ON COLUMN weekly.steps IS 'Steps of the whole days of the week [count]';
COMMENT ON COLUMN weekly.mean_steps IS 'Mean steps of a whole day [count]';
COMMENT ON COLUMN weekly.n_steps IS 'Whole days that mean_steps is of [count]';
COMMENT ON COLUMN weekly.active_calories IS 'Energy spent by moving in the whole days of the week [kcal]';
COMMENT ON COLUMN weekly.active_minutes IS 'Time of medium and high activity in the week, walking included: no measure of training. Of the whole days that have both [min]';
COMMENT ON COLUMN weekly.non_wear_share IS 'Time the ring was not worn by the time recorded, over the whole days of the week whose recorded_time is known [share, 0 to 1]';
