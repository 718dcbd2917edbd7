CREATE OR REPLACE VIEW met_minutes AS
-- The two activities that start next: with more than those none shares a minute.
WITH told_later AS (
  SELECT
    user_id, day, sk,
    lead(met_start) OVER later AS first_start, lead(met_end) OVER later AS first_end,
    lead(met_start, 2) OVER later AS second_start, lead(met_end, 2) OVER later AS second_end
  FROM (
    SELECT
      user_id, day, sk, met_start,
      -- Longer than ten days is absurd, and must not end the query.
      CASE WHEN met_count * met_interval BETWEEN 0 AND 864000
        THEN make_timestamp(epoch_us(met_start) + CAST(met_count * met_interval * 1000000 AS BIGINT))
      END AS met_end
    FROM daily_activity
    WHERE met_start IS NOT NULL
  )
  WINDOW later AS (PARTITION BY user_id ORDER BY met_start, sk)
)
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
FROM daily_activity_met AS met JOIN daily_activity AS activity USING (user_id, day, sk)
JOIN told_later USING (user_id, day, sk)
WHERE
  (met.ts >= first_start AND met.ts < first_end) IS NOT TRUE
  AND (met.ts >= second_start AND met.ts < second_end) IS NOT TRUE;
COMMENT ON VIEW met_minutes IS 'The MET samples of each activity, a row for each minute, with the class of its 5 minutes. A minute that two activities tell, as on the days of flights and clock changes, is that of the one that starts later. Filter by user_id and day (2.5)';
COMMENT ON COLUMN met_minutes.day IS 'Day on which the 24 hours start at 4 a.m., of the document: minutes after midnight belong to the day before';
COMMENT ON COLUMN met_minutes.ts IS 'Start of the minute, UTC';
COMMENT ON COLUMN met_minutes.utc_offset IS 'Local time less UTC when the samples began, for all of them [s]';
COMMENT ON COLUMN met_minutes.seconds IS 'Length: the interval of the samples, 60 unless the service says another [s]';
COMMENT ON COLUMN met_minutes.met IS 'Metabolic equivalent; null where the service had no value [MET]';
COMMENT ON COLUMN met_minutes.met_minutes IS 'met times the length in minutes: add it up [MET min]';
COMMENT ON COLUMN met_minutes.class IS 'Class of the 5 minutes in class_5_min: non_wear, rest, inactive, low, medium or high; null where there is none';
