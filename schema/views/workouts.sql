-- after: nights
-- A ring measures every few seconds in one minute of a workout and not at all in another: each minute counts once, by the mean of what was
-- measured in it. Workouts and rows of heart_rate meet in 5 minutes of the clock, so that they are hashed.
CREATE OR REPLACE VIEW workouts AS
WITH ages AS (
  SELECT user_id, arg_max(age, sk) AS age FROM personal_info WHERE age BETWEEN 1 AND 150 GROUP BY user_id
),
spans AS (
  SELECT
    workout.*, epoch_us(start_datetime) AS from_us,
    -- One absurd end must not end the query of everybody.
    CASE WHEN start_datetime IS NOT NULL AND end_datetime IS NOT NULL
      THEN greatest(epoch_us(start_datetime), least(epoch_us(end_datetime), epoch_us(start_datetime) + 86400000000))
    END AS until_us,
    CASE
      WHEN participants.max_heart_rate IS NOT NULL THEN 'participants.max_heart_rate'
      WHEN year(workout.day) - participants.birth_year BETWEEN 1 AND 150 THEN 'participants.birth_year'
      WHEN ages.age IS NOT NULL THEN 'personal_info.age'
    END AS max_heart_rate_from,
    CASE max_heart_rate_from
      WHEN 'participants.max_heart_rate' THEN CAST(participants.max_heart_rate AS DOUBLE)
      WHEN 'participants.birth_year' THEN 208 - CAST(0.7 AS DOUBLE) * (year(workout.day) - participants.birth_year)
      WHEN 'personal_info.age' THEN 208 - CAST(0.7 AS DOUBLE) * ages.age
    END AS max_heart_rate
  FROM workout LEFT JOIN participants USING (user_id) LEFT JOIN ages USING (user_id)
),
clocks AS (
  SELECT user_id, id, from_us, until_us, unnest(range(from_us // 300000000, (until_us - 1) // 300000000 + 1)) AS clock
  FROM spans
  WHERE until_us > from_us
),
moments AS (
  SELECT
    clocks.user_id, clocks.id, (epoch_us(measured.ts) - clocks.from_us) // 60000000 AS minute,
    arg_max(CAST(measured.bpm AS DOUBLE), measured.source) AS bpm
  FROM clocks JOIN (SELECT user_id, ts, bpm, source, epoch_us(ts) // 300000000 AS clock FROM heart_rate) AS measured
    ON measured.user_id = clocks.user_id AND measured.clock = clocks.clock
      AND epoch_us(measured.ts) >= clocks.from_us AND epoch_us(measured.ts) < clocks.until_us
  GROUP BY clocks.user_id, clocks.id, clocks.from_us, measured.ts
),
minutes AS (
  SELECT user_id, id, minute, avg(bpm) AS bpm, max(bpm) AS highest FROM moments GROUP BY user_id, id, minute
),
measured AS (
  SELECT
    user_id, id, count(*) AS measured_minutes, avg(bpm) AS average_heart_rate, max(highest) AS highest_heart_rate,
    any_value(max_heart_rate) IS NOT NULL AS has_zones,
    count(*) FILTER (bpm >= 0.5 * max_heart_rate AND bpm < 0.6 * max_heart_rate) AS zone_1,
    count(*) FILTER (bpm >= 0.6 * max_heart_rate AND bpm < 0.7 * max_heart_rate) AS zone_2,
    count(*) FILTER (bpm >= 0.7 * max_heart_rate AND bpm < 0.8 * max_heart_rate) AS zone_3,
    count(*) FILTER (bpm >= 0.8 * max_heart_rate AND bpm < 0.9 * max_heart_rate) AS zone_4,
    count(*) FILTER (bpm >= 0.9 * max_heart_rate) AS zone_5
  FROM minutes JOIN (SELECT user_id, id, max_heart_rate FROM spans) AS limits USING (user_id, id)
  GROUP BY user_id, id
)
SELECT
  spans.user_id,
  spans.day,
  spans.id AS workout_id,
  spans.activity,
  spans.intensity,
  spans.source,
  spans.label,
  spans.start_datetime,
  spans.start_datetime_offset,
  spans.end_datetime,
  spans.end_datetime_offset,
  local(spans.start_datetime, spans.start_datetime_offset) AS start_local,
  local(spans.end_datetime, spans.end_datetime_offset) AS end_local,
  (spans.until_us - spans.from_us) / 60000000 AS minutes,
  spans.calories,
  spans.distance,
  coalesce(measured.measured_minutes, 0) AS measured_minutes,
  measured.average_heart_rate,
  measured.highest_heart_rate,
  spans.max_heart_rate,
  spans.max_heart_rate_from,
  CASE WHEN measured.has_zones THEN measured.zone_1 END AS zone_1_minutes,
  CASE WHEN measured.has_zones THEN measured.zone_2 END AS zone_2_minutes,
  CASE WHEN measured.has_zones THEN measured.zone_3 END AS zone_3_minutes,
  CASE WHEN measured.has_zones THEN measured.zone_4 END AS zone_4_minutes,
  CASE WHEN measured.has_zones THEN measured.zone_5 END AS zone_5_minutes,
  zone_1_minutes + 2 * zone_2_minutes + 3 * zone_3_minutes + 4 * zone_4_minutes + 5 * zone_5_minutes AS load,
  CASE WHEN night.within_a_day THEN night.day END AS night_day,
  CASE WHEN night.within_a_day THEN night.sleep_id END AS night_sleep_id,
  CASE WHEN night.within_a_day THEN night.total_sleep_duration END AS night_total_sleep_duration,
  CASE WHEN night.within_a_day THEN night.deep_sleep_duration END AS night_deep_sleep_duration,
  CASE WHEN night.within_a_day THEN night.lowest_heart_rate END AS night_lowest_heart_rate,
  CASE WHEN night.within_a_day THEN night.average_hrv END AS night_average_hrv
FROM spans
LEFT JOIN measured USING (user_id, id)
LEFT JOIN (
  SELECT ended.user_id, ended.id, nights.*, epoch_us(nights.bedtime_start) - ended.until_us <= 86400000000 AS within_a_day
  FROM (SELECT user_id, id, until_us, make_timestamp(until_us) AS ended_at FROM spans WHERE until_us IS NOT NULL) AS ended
  ASOF JOIN (SELECT user_id AS sleeper, * EXCLUDE (user_id) FROM nights WHERE bedtime_start IS NOT NULL) AS nights
    ON nights.sleeper = ended.user_id AND nights.bedtime_start >= ended.ended_at
) AS night ON night.user_id = spans.user_id AND night.id = spans.id;
-- example of workouts: SELECT day, activity, round(minutes) AS minutes, round(average_heart_rate) AS bpm, load, night_average_hrv FROM workouts WHERE user_id = 'ada' ORDER BY day DESC LIMIT 7
COMMENT ON VIEW workouts IS 'One row for each workout, with what heart_rate has of its time, minute by minute, and the night after it. Zones are shares of the maximum heart rate that participants has, or else of what a person of that age usually has: 208 − 0.7 × age (Tanaka), by the birth year in participants or the age in personal_info, which is kept with RINGNECK_PERSONAL_INFO=1; without any of them there are none. Of a workout of more than a day its first 24 hours count. Filter by user_id and day';
COMMENT ON COLUMN workouts.workout_id IS 'Identifier of the document, id of workout';
COMMENT ON COLUMN workouts.start_local IS 'Start, local time where it started';
COMMENT ON COLUMN workouts.end_local IS 'End, local time where it ended';
COMMENT ON COLUMN workouts.minutes IS 'Length, from start to end; null without an end [min]';
COMMENT ON COLUMN workouts.measured_minutes IS 'Minutes from the start on in which heart_rate has a row: all that follows is of these [min]';
COMMENT ON COLUMN workouts.average_heart_rate IS 'Mean of the means of these minutes [beats/min]';
COMMENT ON COLUMN workouts.highest_heart_rate IS 'Highest row of heart_rate in the workout [beats/min]';
COMMENT ON COLUMN workouts.max_heart_rate IS 'Heart rate that zones are shares of: that of participants, else 208 − 0.7 × age; null where neither is known. Never the highest that was measured [beats/min]';
COMMENT ON COLUMN workouts.max_heart_rate_from IS 'What it comes from: participants.max_heart_rate, participants.birth_year (the age is the year of the day less it), or personal_info.age';
COMMENT ON COLUMN workouts.zone_1_minutes IS 'Minutes whose mean is from 50 % to below 60 % of max_heart_rate; null where that is, or nothing was measured [min]';
COMMENT ON COLUMN workouts.zone_2_minutes IS 'The same from 60 % to below 70 % [min]';
COMMENT ON COLUMN workouts.zone_3_minutes IS 'The same from 70 % to below 80 % [min]';
COMMENT ON COLUMN workouts.zone_4_minutes IS 'The same from 80 % to below 90 % [min]';
COMMENT ON COLUMN workouts.zone_5_minutes IS 'The same from 90 % on [min]';
COMMENT ON COLUMN workouts.load IS 'Training load by zones (Edwards): minutes of zone 1, twice those of zone 2, and so on to five times those of zone 5 [weighted min]';
COMMENT ON COLUMN workouts.night_day IS 'Day of waking of the night after: the first of nights that begins at its end or within 24 hours of it; null where there is none';
COMMENT ON COLUMN workouts.night_sleep_id IS 'Identifier of that night, id of sleep';
COMMENT ON COLUMN workouts.night_total_sleep_duration IS 'Time asleep in that night [s]';
COMMENT ON COLUMN workouts.night_deep_sleep_duration IS 'Time of deep sleep in that night [s]';
COMMENT ON COLUMN workouts.night_lowest_heart_rate IS 'Lowest heart rate in that night [beats/min]';
COMMENT ON COLUMN workouts.night_average_hrv IS 'Average heart rate variability in that night, rMSSD [ms]';
