-- The sleeps of a person and day that count, the main one first.
SELECT
  s.sleep_id, s.type, s.main, s.sk,
  epoch(s.bedtime_start) AS start, s.bedtime_start_offset AS start_offset,
  epoch(s.bedtime_end) AS "end", s.bedtime_end_offset AS end_offset, s.offset_change,
  s.total_sleep_duration AS asleep, s.time_in_bed AS in_bed, s.latency, s.efficiency,
  s.average_heart_rate, s.lowest_heart_rate, s.average_hrv, s.average_breath,
  epoch(d.heart_rate_start) AS heart_rate_start, d.heart_rate_interval, epoch(d.hrv_start) AS hrv_start, d.hrv_interval,
  d.movement_30_sec AS movement
FROM counted_sleeps s JOIN sleep d USING (user_id, day, sk)
WHERE s.user_id = $user AND s.day = $day::DATE AND s.bedtime_start IS NOT NULL
ORDER BY s.main DESC, s.bedtime_start
