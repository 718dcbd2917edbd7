-- The nights and naps of a person, with their stages: a row for each stretch of a stage, one without a stage where none came.
SELECT
  c.sleep_id, c.day::VARCHAR AS day, c.main, epoch(c.bedtime_start) AS start, c.bedtime_start_offset AS start_offset,
  epoch(c.bedtime_end) AS "end", c.bedtime_end_offset AS end_offset, p.seconds, p.stage
FROM (FROM counted_sleeps WHERE user_id = $user AND day BETWEEN $from::DATE AND $to::DATE AND bedtime_start IS NOT NULL AND (main OR nap)) c
LEFT JOIN (FROM sleep_stage_spans WHERE user_id = $user AND day BETWEEN $from::DATE AND $to::DATE AND seconds > 0) p
  ON p.day = c.day AND p.sleep_id = c.sleep_id
ORDER BY c.bedtime_start, c.sleep_id, p.span
