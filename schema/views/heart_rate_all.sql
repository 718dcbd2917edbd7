-- after: macros
CREATE OR REPLACE VIEW heart_rate_sources AS
SELECT
  user_id, CAST(local(ts, utc_offset) AS DATE) AS day, ts, utc_offset, CAST(bpm AS DOUBLE) AS bpm,
  source, 'heart_rate' AS origin, CAST(NULL AS BIGINT) AS sk, CAST(NULL AS DOUBLE) AS seconds
FROM heart_rate
UNION ALL
SELECT user_id, CAST(local(ts, utc_offset) AS DATE), ts, utc_offset, value, 'sleep', 'sleep', sk, heart_rate_interval
FROM sleep_heart_rate JOIN (SELECT user_id, day, sk, heart_rate_interval FROM sleep) AS sleep USING (user_id, day, sk)
WHERE value IS NOT NULL
UNION ALL
SELECT user_id, CAST(local(ts, utc_offset) AS DATE), ts, utc_offset, value, 'session', 'session', sk, heart_rate_interval
FROM session_heart_rate JOIN (SELECT user_id, day, sk, heart_rate_interval FROM session) AS session USING (user_id, day, sk)
WHERE value IS NOT NULL;
COMMENT ON VIEW heart_rate_sources IS 'All measurements of the heart rate on one axis of time, from all sources: the rows of heart_rate (2.14) and the samples of sleeps (2.12, of every type) and sessions (2.13), samples without a value left out. A minute of sleep is mostly there twice: for averages take heart_rate_all, or one origin. Filter by user_id and ts';
COMMENT ON COLUMN heart_rate_sources.day IS 'Calendar day of ts at utc_offset; not the day of the sleep. A filter on ts is faster';
COMMENT ON COLUMN heart_rate_sources.ts IS 'When the heart rate was measured, UTC; of a sample the start of its interval';
COMMENT ON COLUMN heart_rate_sources.utc_offset IS 'Local time less UTC: of samples when recording started; of heart_rate as the service wrote it, mostly 0, which says nothing of where the person was [s]';
COMMENT ON COLUMN heart_rate_sources.bpm IS 'Heart rate [beats/min]';
COMMENT ON COLUMN heart_rate_sources.source IS 'What the person did: of heart_rate as the service says (awake, workout, rest, sleep, live, session); else sleep or session';
COMMENT ON COLUMN heart_rate_sources.origin IS 'Where the row comes from: heart_rate, sleep or session';
COMMENT ON COLUMN heart_rate_sources.sk IS 'The version of the document, sk of sleep or session; null for rows of heart_rate';
COMMENT ON COLUMN heart_rate_sources.seconds IS 'Interval of the sample, from ts on; null for rows of heart_rate, which are of a moment [s]';

-- Rows and samples meet in 5 minutes of the clock, so that they are hashed: joined by their order a question takes three times as long.
CREATE OR REPLACE VIEW heart_rate_all AS
WITH moments AS (
  SELECT
    user_id, CAST(local(ts, utc_offset) AS DATE) AS day, ts, utc_offset, bpm, source, 'heart_rate' AS origin,
    CAST(NULL AS BIGINT) AS sk, CAST(NULL AS DOUBLE) AS seconds
  FROM (
    SELECT user_id, ts, arg_max(utc_offset, source) AS utc_offset, arg_max(CAST(bpm AS DOUBLE), source) AS bpm, max(source) AS source
    FROM heart_rate
    GROUP BY user_id, ts
  ) AS moments
  UNION ALL
  SELECT
    user_id, last.day, ts, last.utc_offset, last.bpm, last.source, last.origin, last.sk, last.seconds
  FROM (
    SELECT
      samples.user_id, samples.ts,
      arg_max({day: day, utc_offset: utc_offset, bpm: bpm, source: source, origin: origin, sk: sk, seconds: seconds}, sk) AS last
    FROM (
      SELECT
        *,
        epoch_us(ts) + CAST(greatest(0, least(seconds, 86400)) * 1000000 AS BIGINT) AS until_us,
        unnest(range(epoch_us(ts) // 300000000, greatest(epoch_us(ts), until_us - 1) // 300000000 + 1)) AS clock
      FROM heart_rate_sources
      WHERE origin <> 'heart_rate'
    ) AS samples
    LEFT JOIN (SELECT user_id, ts, epoch_us(ts) // 300000000 AS clock FROM heart_rate) AS measured
      ON measured.user_id = samples.user_id AND measured.clock = samples.clock
        AND measured.ts >= samples.ts AND epoch_us(measured.ts) < until_us
    GROUP BY samples.user_id, samples.ts
    HAVING count(measured.ts) = 0
  )
),
-- All workouts that 5 minutes meet, in one row: no measurement meets two.
workouts_by_clock AS (
  SELECT user_id, clock, list({id: id, from_us: from_us, until_us: until_us} ORDER BY from_us DESC, sk DESC) AS workouts
  FROM (
    SELECT user_id, id, sk, from_us, until_us, unnest(range(from_us // 300000000, (until_us - 1) // 300000000 + 1)) AS clock
    FROM (
      SELECT
        user_id, id, sk, epoch_us(start_datetime) AS from_us,
        least(epoch_us(end_datetime), epoch_us(start_datetime) + 86400000000) AS until_us
      FROM workout
      WHERE end_datetime > start_datetime
    )
  )
  GROUP BY user_id, clock
)
SELECT
  moments.user_id, moments.day, moments.ts, moments.utc_offset, moments.bpm, moments.source, moments.origin, moments.sk, moments.seconds,
  list_filter(workouts, lambda workout: workout.from_us <= epoch_us(moments.ts) AND epoch_us(moments.ts) < workout.until_us)[1].id AS workout_id
FROM moments
LEFT JOIN workouts_by_clock ON workouts_by_clock.user_id = moments.user_id AND workouts_by_clock.clock = epoch_us(moments.ts) // 300000000;
COMMENT ON VIEW heart_rate_all IS 'The heart rate on one axis of time, each moment once: the rows of heart_rate (2.14), and the samples of sleeps (2.12, of every type) and sessions (2.13) in whose interval no row of heart_rate lies. Of rows of one moment the one whose source comes last by name; of samples of one moment the one whose document was stored last; of an interval longer than a day its first day counts. All of them has heart_rate_sources. Filter by user_id and ts';
COMMENT ON COLUMN heart_rate_all.day IS 'Calendar day of ts at utc_offset; not the day of the sleep. A filter on ts is faster';
COMMENT ON COLUMN heart_rate_all.ts IS 'When the heart rate was measured, UTC; of a sample the start of its interval';
COMMENT ON COLUMN heart_rate_all.utc_offset IS 'Local time less UTC: of samples when recording started; of heart_rate as the service wrote it, mostly 0, which says nothing of where the person was [s]';
COMMENT ON COLUMN heart_rate_all.bpm IS 'Heart rate [beats/min]';
COMMENT ON COLUMN heart_rate_all.source IS 'What the person did: of heart_rate as the service says (awake, workout, rest, sleep, live, session); else sleep or session';
COMMENT ON COLUMN heart_rate_all.origin IS 'Where the row comes from: heart_rate, sleep or session';
COMMENT ON COLUMN heart_rate_all.sk IS 'The version of the document, sk of sleep or session; null for rows of heart_rate';
COMMENT ON COLUMN heart_rate_all.seconds IS 'Interval of the sample, from ts on; null for rows of heart_rate, which are of a moment [s]';
COMMENT ON COLUMN heart_rate_all.workout_id IS 'The workout in whose time it lies, id of workout; of several the one that began last; null outside of workouts, and in what a workout took beyond a day';
