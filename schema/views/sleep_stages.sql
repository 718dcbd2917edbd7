-- Moments by numbers of microseconds: with intervals a row takes a fifth more time.

CREATE OR REPLACE VIEW sleep_stages AS
WITH strings AS (
  SELECT
    user_id, day, id, bedtime_start, bedtime_start_offset, bedtime_end,
    coalesce(nullif(sleep_phase_30_sec, ''), nullif(sleep_phase_5_min, '')) AS digits,
    CASE WHEN sleep_phase_30_sec <> '' THEN 30 ELSE 300 END AS step
  FROM sleep
  WHERE coalesce(type, '') NOT IN ('deleted', 'rest')
),
digits AS (
  SELECT
    user_id, day, id, bedtime_start, bedtime_start_offset, step,
    coalesce(epoch(bedtime_end - bedtime_start), length(digits) * step) AS lasted,
    unnest(string_split(digits, '')) AS code,
    unnest(range(length(digits))) AS position
  FROM strings
)
SELECT
  user_id,
  day,
  id AS sleep_id,
  position,
  make_timestamp(epoch_us(bedtime_start) + position * step * 1000000) AS ts,
  bedtime_start_offset AS utc_offset,
  CAST(greatest(0, least(step, lasted - position * step)) AS BIGINT) AS seconds,
  CASE code WHEN '1' THEN 'deep' WHEN '2' THEN 'light' WHEN '3' THEN 'rem' WHEN '4' THEN 'awake' END AS stage,
  code,
  CAST(step AS BIGINT) AS step
FROM digits;
COMMENT ON VIEW sleep_stages IS 'The stages of each sleep in timed rows: from sleep_phase_30_sec where the service gave it, else from sleep_phase_5_min, which is coarser: its sums differ from the durations of the sleep. Naps too, types deleted and rest left out; join nights by user_id, day and sleep_id for the main sleeps alone. Filter by user_id and day (2.12)';
COMMENT ON COLUMN sleep_stages.day IS 'Day of waking, of the document';
COMMENT ON COLUMN sleep_stages.sleep_id IS 'Identifier of the document, id of sleep';
COMMENT ON COLUMN sleep_stages.position IS 'Place in the string, from 0 [count]';
COMMENT ON COLUMN sleep_stages.ts IS 'Start of the 30 seconds or 5 minutes, UTC: bedtime_start and position steps';
COMMENT ON COLUMN sleep_stages.utc_offset IS 'Local time less UTC when the sleep started, for the whole of it [s]';
COMMENT ON COLUMN sleep_stages.seconds IS 'Length: 30 or 300, less where bedtime_end comes sooner, 0 for what lies after it [s]';
COMMENT ON COLUMN sleep_stages.stage IS 'deep, light, rem or awake; null for a digit that the specification does not name';
COMMENT ON COLUMN sleep_stages.code IS 'The digit as it came: 1 deep, 2 light, 3 REM, 4 awake';
COMMENT ON COLUMN sleep_stages.step IS 'Time that one digit stands for, the same in the whole sleep: 30 for sleep_phase_30_sec, 300 for sleep_phase_5_min [s]';

CREATE OR REPLACE VIEW sleep_stage_spans AS
WITH strings AS (
  SELECT
    user_id, day, sk, id, bedtime_start, bedtime_start_offset,
    coalesce(nullif(sleep_phase_30_sec, ''), nullif(sleep_phase_5_min, '')) AS digits,
    regexp_extract_all(digits, '0+|1+|2+|3+|4+|5+|6+|7+|8+|9+|[^0-9]') AS runs,
    CASE WHEN sleep_phase_30_sec <> '' THEN 30 ELSE 300 END AS step,
    coalesce(epoch(bedtime_end - bedtime_start), length(digits) * step) AS lasted
  FROM sleep
  WHERE coalesce(type, '') NOT IN ('deleted', 'rest')
),
numbered AS (
  SELECT
    user_id, day, sk, id, bedtime_start, bedtime_start_offset, lasted, step,
    unnest(runs) AS run,
    unnest(range(1, length(runs) + 1)) AS span
  FROM strings
),
-- What the window sorts is the memory that everybody takes: no more than is needed, and sk rather than the longer id.
placed AS (
  SELECT
    user_id, day, id, bedtime_start, bedtime_start_offset, lasted, step, span, code, length,
    CAST(sum(length) OVER (PARTITION BY user_id, day, sk ORDER BY span) AS BIGINT) AS until
  FROM (
    SELECT user_id, day, sk, id, bedtime_start, bedtime_start_offset, lasted, step, span, left(run, 1) AS code, step * length(run) AS length
    FROM numbered
  )
)
SELECT
  user_id,
  day,
  id AS sleep_id,
  span,
  make_timestamp(epoch_us(bedtime_start) + (until - length) * 1000000) AS ts,
  bedtime_start_offset AS utc_offset,
  CAST(least(until, greatest(until - length, lasted)) - (until - length) AS BIGINT) AS seconds,
  CASE code WHEN '1' THEN 'deep' WHEN '2' THEN 'light' WHEN '3' THEN 'rem' WHEN '4' THEN 'awake' END AS stage,
  code,
  CAST(step AS BIGINT) AS step
FROM placed;
COMMENT ON VIEW sleep_stage_spans IS 'sleep_stages with neighbours of one stage merged: one row for each stretch of a stage, or of a digit that the specification does not name. Digits of 5 minutes hide most short stretches: count stretches only within one step. Filter by user_id and day (2.12)';
COMMENT ON COLUMN sleep_stage_spans.day IS 'Day of waking, of the document';
COMMENT ON COLUMN sleep_stage_spans.sleep_id IS 'Identifier of the document, id of sleep';
COMMENT ON COLUMN sleep_stage_spans.span IS 'Number of the stretch within the sleep, from 1 [count]';
COMMENT ON COLUMN sleep_stage_spans.ts IS 'Start of the stretch, UTC; it ends seconds later';
COMMENT ON COLUMN sleep_stage_spans.utc_offset IS 'Local time less UTC when the sleep started, for the whole of it [s]';
COMMENT ON COLUMN sleep_stage_spans.seconds IS 'Length of the stretch, less where bedtime_end comes sooner, 0 for what lies after it [s]';
COMMENT ON COLUMN sleep_stage_spans.stage IS 'deep, light, rem or awake; null for a digit that the specification does not name';
COMMENT ON COLUMN sleep_stage_spans.code IS 'The digit as it came: 1 deep, 2 light, 3 REM, 4 awake';
COMMENT ON COLUMN sleep_stage_spans.step IS 'Time that one digit stands for, the same in the whole sleep: 30 for sleep_phase_30_sec, 300 for sleep_phase_5_min [s]';

CREATE OR REPLACE VIEW sleep_movement AS
WITH digits AS (
  SELECT
    user_id, day, id, bedtime_start, bedtime_start_offset,
    coalesce(epoch(bedtime_end - bedtime_start), length(movement_30_sec) * 30) AS lasted,
    unnest(string_split(movement_30_sec, '')) AS code,
    unnest(range(length(movement_30_sec))) AS position
  FROM sleep
  WHERE coalesce(type, '') NOT IN ('deleted', 'rest') AND movement_30_sec <> ''
)
SELECT
  user_id,
  day,
  id AS sleep_id,
  position,
  make_timestamp(epoch_us(bedtime_start) + position * 30000000) AS ts,
  bedtime_start_offset AS utc_offset,
  CAST(greatest(0, least(30, lasted - position * 30)) AS BIGINT) AS seconds,
  CASE code WHEN '1' THEN 'none' WHEN '2' THEN 'restless' WHEN '3' THEN 'tossing' WHEN '4' THEN 'active' END AS movement,
  code
FROM digits;
COMMENT ON VIEW sleep_movement IS 'movement_30_sec of each sleep in timed rows. Naps too, types deleted and rest left out; join nights by user_id, day and sleep_id for the main sleeps alone. Filter by user_id and day (2.12)';
COMMENT ON COLUMN sleep_movement.day IS 'Day of waking, of the document';
COMMENT ON COLUMN sleep_movement.sleep_id IS 'Identifier of the document, id of sleep';
COMMENT ON COLUMN sleep_movement.position IS 'Place in the string, from 0 [count]';
COMMENT ON COLUMN sleep_movement.ts IS 'Start of the 30 seconds, UTC: bedtime_start and position steps';
COMMENT ON COLUMN sleep_movement.utc_offset IS 'Local time less UTC when the sleep started, for the whole of it [s]';
COMMENT ON COLUMN sleep_movement.seconds IS 'Length: 30, less where bedtime_end comes sooner, 0 for what lies after it [s]';
COMMENT ON COLUMN sleep_movement.movement IS 'none, restless, tossing or active; null for a digit that the specification does not name';
COMMENT ON COLUMN sleep_movement.code IS 'The digit as it came: 1 none, 2 restless, 3 tossing, 4 active';
