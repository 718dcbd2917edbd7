-- after: daily
-- Within, a metric is a number: its place in the three lists. Sorting by names would take a fifth more time and memory.
CREATE OR REPLACE MACRO measured_between(first_day, last_day) AS TABLE
SELECT
  user_id, day, place, value,
  -- One absurd value must not end the query of everybody: the square of more than 1e150 is no number. The last four go on all day.
  CASE WHEN abs(value) < 1e100 AND NOT (is_unfinished AND place > 12) THEN value END AS finite
FROM (
  SELECT
    user_id,
    day,
    coalesce(activity.unfinished, false) AS is_unfinished,
    unnest(range(1, 17)) AS place,
    unnest([
      CAST(night.average_hrv AS DOUBLE),
      night.lowest_heart_rate,
      night.average_heart_rate,
      night.average_breath,
      readiness.temperature_deviation,
      spo2.average,
      night.total_sleep_duration,
      night.deep_sleep_duration,
      night.rem_sleep_duration,
      night.efficiency,
      scored.score,
      readiness.score,
      activity.score,
      stress.stress_high,
      activity.steps,
      activity.active_calories
    ]) AS value
  FROM (
    SELECT
      user_id,
      day,
      arg_max(scored, sk) AS scored,
      arg_max(readiness, sk) AS readiness,
      arg_max(activity, sk) AS activity,
      arg_max(stress, sk) AS stress,
      arg_max(spo2, sk) AS spo2,
      any_value(night) AS night
    FROM facts_between(first_day, last_day)
    GROUP BY user_id, day
  )
);
COMMENT ON MACRO TABLE measured_between IS 'What baselines are made of, of the days from first_day to last_day, both included: for each day of daily and each metric (place is its number, see metric_at) the value as it is there, and as it counts (finite): null where it is missing, of 1e100 and more of either sign, or of an unfinished day. Null: no bound';

CREATE OR REPLACE MACRO metric_at(place) AS
  ([
    'average_hrv', 'lowest_heart_rate', 'average_heart_rate', 'average_breath',
    'temperature_deviation', 'spo2_average', 'total_sleep_duration', 'deep_sleep_duration',
    'rem_sleep_duration', 'efficiency', 'sleep_score', 'readiness_score',
    'activity_score', 'stress_high', 'steps', 'active_calories'
  ])[place];
COMMENT ON MACRO metric_at IS 'The name of a metric by its place in measured_between: metric_at(1) is average_hrv';

-- The least spread that is believed of each metric. 1.4826 MAD are a standard deviation, where values are normal.
CREATE OR REPLACE MACRO robust_z(value, middle, spread, place) AS
  (value - middle) / nullif(
    greatest(1.4826 * spread, CASE place WHEN 1 THEN 0.02 * abs(middle) WHEN 2 THEN 1 WHEN 4 THEN 0.125 WHEN 5 THEN 0.1 END), 0
  );
COMMENT ON MACRO robust_z IS 'By how many robust standard deviations a value lies above a median (middle), by the median absolute deviation (spread) and the least spread of the metric at this place of measured_between, as robust_z_28 of baselines';

-- Frames of so many rows are frames of so many days: after a day with values daily has the next 366, or all up to the next one.
-- No window of baselines_between is left out because nobody asks for it.
CREATE OR REPLACE MACRO usual_between(first_day, last_day) AS TABLE
SELECT
  user_id, day, metric_at(place) AS metric, value, finite AS counted, days_before,
  CASE WHEN days_before >= 14 THEN median_before END AS median_28,
  CASE WHEN days_before >= 14 THEN mad_before END AS mad_28,
  robust_z(finite, median_28, mad_28, place) AS robust_z_28
FROM (
  SELECT
    user_id, day, place, value, finite,
    count(finite) OVER before AS days_before, median(finite) OVER before AS median_before, mad(finite) OVER before AS mad_before
  FROM measured_between(first_day::DATE - 28, last_day::DATE)
  WINDOW before AS (PARTITION BY user_id, place ORDER BY day ROWS BETWEEN 28 PRECEDING AND 1 PRECEDING)
)
WHERE first_day IS NULL OR day >= first_day::DATE;
COMMENT ON MACRO TABLE usual_between IS 'What of baselines_between tells a value against the usual, in less than half of the time: median_28, mad_28, robust_z_28, and of how many of the 28 days before there is a value (days_before); counted is the value as it counts: null where measured_between has no finite one, as of an unfinished day. FROM usual_between(''2025-01-01'', ''2025-01-31'') WHERE user_id = ''ada''';

CREATE OR REPLACE MACRO baselines_between(first_day, last_day) AS TABLE
WITH rolling AS (
  SELECT
    user_id, day, place, value, finite,
    count(finite) OVER week AS days_7,
    CASE WHEN days_7 >= 4 THEN avg(finite) OVER week END AS mean_7,
    CASE WHEN days_7 >= 4 THEN stddev_samp(finite) OVER week END AS sd_7,
    count(finite) OVER month AS days_28,
    CASE WHEN days_28 >= 14 THEN avg(finite) OVER month END AS mean_28,
    CASE WHEN days_28 >= 14 THEN stddev_samp(finite) OVER month END AS sd_28,
    count(finite) OVER quarter AS days_90,
    CASE WHEN days_90 >= 45 THEN avg(finite) OVER quarter END AS mean_90,
    CASE WHEN days_90 >= 45 THEN stddev_samp(finite) OVER quarter END AS sd_90,
    median(finite) OVER before AS median_before,
    mad(finite) OVER before AS mad_before
  -- The mean of 90 days before the first one: that of the 90 which end with the day before it.
  FROM measured_between(first_day::DATE - 91, last_day::DATE)
  WINDOW
    week AS (PARTITION BY user_id, place ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW),
    month AS (PARTITION BY user_id, place ORDER BY day ROWS BETWEEN 27 PRECEDING AND CURRENT ROW),
    quarter AS (PARTITION BY user_id, place ORDER BY day ROWS BETWEEN 89 PRECEDING AND CURRENT ROW),
    before AS (PARTITION BY user_id, place ORDER BY day ROWS BETWEEN 28 PRECEDING AND 1 PRECEDING)
)
SELECT
  user_id,
  day,
  metric_at(place) AS metric,
  ([
    'ms', 'beats/min', 'beats/min', 'breaths/min', '°C', '%', 's', 's',
    's', '%', 'score', 'score', 'score', 's', 'count', 'kcal'
  ])[place] AS unit,
  value,
  days_7, mean_7, sd_7, CASE WHEN lag(days_7) OVER days >= 5 THEN (finite - lag(mean_7) OVER days) / nullif(lag(sd_7) OVER days, 0) END AS z_7,
  days_28, mean_28, sd_28, (finite - lag(mean_28) OVER days) / nullif(lag(sd_28) OVER days, 0) AS z_28,
  days_90, mean_90, sd_90, (finite - lag(mean_90) OVER days) / nullif(lag(sd_90) OVER days, 0) AS z_90,
  CASE WHEN lag(days_28) OVER days >= 14 THEN median_before END AS median_28,
  CASE WHEN median_28 IS NOT NULL THEN mad_before END AS mad_28,
  robust_z(finite, median_28, mad_28, place) AS robust_z_28
FROM rolling
WINDOW days AS (PARTITION BY user_id, place ORDER BY day)
QUALIFY first_day IS NULL OR day >= first_day::DATE;
COMMENT ON MACRO TABLE baselines_between IS 'baselines of the days from first_day to last_day, both included: no more than those and the 91 days before them are read, so that a short range is quick. Null: no bound. FROM baselines_between(''2025-01-01'', ''2025-01-31'') WHERE user_id = ''ada''';

CREATE OR REPLACE VIEW baselines AS
SELECT
  user_id, day, metric, unit, value,
  days_7, mean_7, sd_7, z_7,
  days_28, mean_28, sd_28, z_28,
  days_90, mean_90, sd_90, z_90,
  median_28, mad_28, robust_z_28
FROM baselines_between(NULL, NULL);
-- example of baselines: SELECT day, value, round(median_28, 1) AS usual, round(robust_z_28, 1) AS z FROM baselines WHERE user_id = 'ada' AND metric = 'average_hrv' ORDER BY day DESC LIMIT 7
COMMENT ON VIEW baselines IS 'What is usual for a person: one row for each user, day of daily and metric, with rolling means, standard deviations and z-scores over 7, 28 and 90 calendar days, and a robust z-score against the 28 days before, which a few sick nights among them hardly move. Days without a value count as missing, not as 0; so do activity_score, stress_high, steps and active_calories of a day with activity_unfinished in daily, such as today. Filter by user_id and metric: the days before must be read whatever the day (a rolling view reads one user’s documents)';
COMMENT ON COLUMN baselines.user_id IS 'The account, as named by `account add`';
COMMENT ON COLUMN baselines.day IS 'The day, as in daily';
COMMENT ON COLUMN baselines.metric IS 'What is measured, a column of daily: average_hrv, lowest_heart_rate, average_heart_rate, average_breath, temperature_deviation, spo2_average, total_sleep_duration, deep_sleep_duration, rem_sleep_duration, efficiency, sleep_score, readiness_score, activity_score, stress_high, steps or active_calories';
COMMENT ON COLUMN baselines.unit IS 'Unit of value, mean and sd: ms, beats/min, breaths/min, °C, %, s, score, count or kcal';
COMMENT ON COLUMN baselines.value IS 'The metric on the day itself, as in daily [as unit says]; null where it is missing. Of an unfinished day activity_score, stress_high, steps and active_calories are as far as they have come: they are in no mean and have no z-score';
COMMENT ON COLUMN baselines.days_7 IS 'How many of the 7 days that end with this day have a value. Values of 1e100 and more, of either sign, count as missing [count]';
COMMENT ON COLUMN baselines.mean_7 IS 'Mean of the 7 days that end with this day [as unit says]; null with fewer than 4 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.sd_7 IS 'Standard deviation of the 7 days that end with this day, of a sample [as unit says]; null with fewer than 4 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.z_7 IS 'By how many standard deviations the value lies above the mean of the 7 days before this day, itself left out: value less mean_7 of the day before, by its sd_7; null where fewer than 5 of those days have a value, where the deviation is 0, for an unfinished day’s activity and stress, and for a value of 1e100 and more, of either sign';
COMMENT ON COLUMN baselines.days_28 IS 'How many of the 28 days that end with this day have a value. Values of 1e100 and more, of either sign, count as missing [count]';
COMMENT ON COLUMN baselines.mean_28 IS 'Mean of the 28 days that end with this day [as unit says]; null with fewer than 14 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.sd_28 IS 'Standard deviation of the 28 days that end with this day, of a sample [as unit says]; null with fewer than 14 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.z_28 IS 'By how many standard deviations the value lies above the mean of the 28 days before this day, itself left out: value less mean_28 of the day before, by its sd_28; null where these are, where the deviation is 0, for an unfinished day’s activity and stress, and for a value of 1e100 and more, of either sign';
COMMENT ON COLUMN baselines.days_90 IS 'How many of the 90 days that end with this day have a value. Values of 1e100 and more, of either sign, count as missing [count]';
COMMENT ON COLUMN baselines.mean_90 IS 'Mean of the 90 days that end with this day [as unit says]; null with fewer than 45 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.sd_90 IS 'Standard deviation of the 90 days that end with this day, of a sample [as unit says]; null with fewer than 45 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.z_90 IS 'By how many standard deviations the value lies above the mean of the 90 days before this day, itself left out: value less mean_90 of the day before, by its sd_90; null where these are, where the deviation is 0, for an unfinished day’s activity and stress, and for a value of 1e100 and more, of either sign';
COMMENT ON COLUMN baselines.median_28 IS 'Median of the 28 days before this day, itself left out [as unit says]; null with fewer than 14 values. Values of 1e100 and more, of either sign, count as missing';
COMMENT ON COLUMN baselines.mad_28 IS 'Median of the distances of those 28 days from median_28 (median absolute deviation) [as unit says]; null with fewer than 14 values';
COMMENT ON COLUMN baselines.robust_z_28 IS 'How unusual the value is, whatever a few of the days before were like: value less median_28, by the greater of 1.4826 mad_28 and a least spread: 0.1 °C for temperature_deviation, 1 beat/min for lowest_heart_rate, 0.125 breaths/min for average_breath, 2 % of median_28 for average_hrv, none for the others [robust standard deviations]; null where median_28 is, where the spread is 0, for an unfinished day’s activity and stress, and for a value of 1e100 and more, of either sign';
