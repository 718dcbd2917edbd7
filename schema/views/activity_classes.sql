CREATE OR REPLACE VIEW activity_classes AS
WITH digits AS (
  SELECT
    user_id, day, id,
    coalesce(timestamp, met_start) AS starts_at,
    coalesce(timestamp_offset, met_offset) AS utc_offset,
    unnest(string_split(class_5_min, '')) AS code,
    unnest(range(length(class_5_min))) AS position
  FROM daily_activity
  WHERE class_5_min <> ''
)
SELECT
  user_id,
  day,
  id AS activity_id,
  position,
  make_timestamp(epoch_us(starts_at) + position * 300000000) AS ts,
  utc_offset,
  CAST(300 AS BIGINT) AS seconds,
  CASE code
    WHEN '0' THEN 'non_wear' WHEN '1' THEN 'rest' WHEN '2' THEN 'inactive'
    WHEN '3' THEN 'low' WHEN '4' THEN 'medium' WHEN '5' THEN 'high'
  END AS class,
  code
FROM digits;
COMMENT ON VIEW activity_classes IS 'class_5_min of each activity in timed rows, from 4 a.m. local time on. A whole day has 288 rows, today those so far; on days of flights and clock changes two activities may tell of the same time. Filter by user_id and day (2.5)';
COMMENT ON COLUMN activity_classes.day IS 'Day on which the 24 hours start, of the document';
COMMENT ON COLUMN activity_classes.activity_id IS 'Identifier of the document, id of daily_activity';
COMMENT ON COLUMN activity_classes.position IS 'Place in the string, from 0 [count]';
COMMENT ON COLUMN activity_classes.ts IS 'Start of the 5 minutes, UTC: timestamp of the document, or the start of its MET samples where it has none, and position steps';
COMMENT ON COLUMN activity_classes.utc_offset IS 'Local time less UTC when the activity started, for the whole of it [s]';
COMMENT ON COLUMN activity_classes.seconds IS 'Length: 300 [s]';
COMMENT ON COLUMN activity_classes.class IS 'non_wear, rest, inactive, low, medium or high; null for a digit that the specification does not name';
COMMENT ON COLUMN activity_classes.code IS 'The digit as it came: 0 non-wear, 1 rest, 2 inactive, 3 low, 4 medium, 5 high activity';
