CREATE OR REPLACE VIEW met_minutes AS
SELECT
  user_id,
  day,
  met.ts,
  met.utc_offset,
  activity.met_interval AS seconds,
  met.value AS met,
  met.value * activity.met_interval / 60 AS met_minutes,
  -- The place is 0, where there is no digit, before the activity starts.
  CASE
    substr(
      activity.class_5_min,
      greatest(0, (epoch_us(met.ts) - epoch_us(coalesce(activity.timestamp, activity.met_start)) + 300000000) // 300000000),
      1
    )
    WHEN '0' THEN 'non_wear' WHEN '1' THEN 'rest' WHEN '2' THEN 'inactive'
    WHEN '3' THEN 'low' WHEN '4' THEN 'medium' WHEN '5' THEN 'high'
  END AS class
FROM daily_activity_met AS met JOIN daily_activity AS activity USING (user_id, day, sk);
COMMENT ON VIEW met_minutes IS 'The MET samples of each activity, a row for each minute, with the class of its 5 minutes. Filter by user_id and day (2.5)';
COMMENT ON COLUMN met_minutes.user_id IS 'The account, as named by `account add`';
COMMENT ON COLUMN met_minutes.day IS 'Day on which the 24 hours start at 4 a.m., of the document: minutes after midnight belong to the day before';
COMMENT ON COLUMN met_minutes.ts IS 'Start of the minute, UTC';
COMMENT ON COLUMN met_minutes.utc_offset IS 'Local time less UTC when the samples began, for all of them [s]';
COMMENT ON COLUMN met_minutes.seconds IS 'Length: the interval of the samples, 60 unless the service says another [s]';
COMMENT ON COLUMN met_minutes.met IS 'Metabolic equivalent; null where the service had no value [MET]';
COMMENT ON COLUMN met_minutes.met_minutes IS 'met times the length in minutes: add it up [MET min]';
COMMENT ON COLUMN met_minutes.class IS 'Class of the 5 minutes in class_5_min: non_wear, rest, inactive, low, medium or high; null where there is none';
