-- after: macros
-- Apart from counted_sleeps: a window is computed even where nobody asks for it, and who wants the main sleeps does not need those of naps.
CREATE OR REPLACE VIEW ranked_sleeps AS
WITH candidates AS (
  SELECT
    user_id, day, id, type,
    bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset,
    local(bedtime_start, bedtime_start_offset) AS bedtime_start_local,
    local(bedtime_end, bedtime_end_offset) AS bedtime_end_local,
    local(bedtime_start + (bedtime_end - bedtime_start) / 2, bedtime_end_offset) AS midpoint_local,
    time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
    latency, efficiency, restless_periods,
    average_heart_rate, lowest_heart_rate, average_hrv, average_breath,
    readiness_temperature_deviation, low_battery_alert, ring_id, sk,
    CASE
      WHEN type = 'late_nap' THEN 0
      WHEN type = 'long_sleep' THEN 3
      WHEN time_in_bed > 10800 THEN 2
      WHEN extract(hour FROM midpoint_local) NOT BETWEEN 9 AND 20 THEN 1
      ELSE 0
    END AS precedence
  FROM sleep
  WHERE coalesce(type, '') NOT IN ('deleted', 'rest') AND bedtime_end IS NOT NULL
)
SELECT
  user_id, day,
  id AS sleep_id,
  type,
  precedence > 0 AND row_number() OVER (
    PARTITION BY user_id, day
    ORDER BY precedence DESC, total_sleep_duration DESC NULLS LAST, time_in_bed DESC NULLS LAST, bedtime_start, sk DESC, id
  ) = 1 AS main,
  bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset,
  bedtime_start_local, bedtime_end_local, midpoint_local,
  bedtime_end_offset - bedtime_start_offset AS offset_change,
  time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
  latency, efficiency, restless_periods,
  average_heart_rate, lowest_heart_rate, average_hrv, average_breath,
  readiness_temperature_deviation AS temperature_deviation,
  low_battery_alert, ring_id, sk
FROM candidates;
COMMENT ON VIEW ranked_sleeps IS 'counted_sleeps without nap, which takes as long again to tell';
COMMENT ON COLUMN ranked_sleeps.day IS 'Day of waking, as the service says: what ends after 18:00 local time counts to the next day';
COMMENT ON COLUMN ranked_sleeps.sleep_id IS 'Identifier of the document, id of sleep';
COMMENT ON COLUMN ranked_sleeps.type IS 'Kind of sleep: long_sleep, sleep or late_nap; null where the service gave none';
COMMENT ON COLUMN ranked_sleeps.main IS 'Whether this is the main sleep of its day, by the rule of this view';
COMMENT ON COLUMN ranked_sleeps.bedtime_end IS 'End of the time in bed, UTC';
COMMENT ON COLUMN ranked_sleeps.bedtime_end_offset IS 'Offset of bedtime_end [seconds east of UTC]; another than that of bedtime_start after a change of the clock or a flight';
COMMENT ON COLUMN ranked_sleeps.bedtime_start_local IS 'Start of the time in bed, local time where it started';
COMMENT ON COLUMN ranked_sleeps.bedtime_end_local IS 'End of the time in bed, local time where it ended';
COMMENT ON COLUMN ranked_sleeps.midpoint_local IS 'Middle between bedtime_start and bedtime_end, local time where it ended';
COMMENT ON COLUMN ranked_sleeps.offset_change IS 'bedtime_end_offset less bedtime_start_offset [s]: by how much clocks went forward during the sleep, by a change of the clock or a flight; 0 in an ordinary one';
COMMENT ON COLUMN ranked_sleeps.awake_time IS 'Time awake in bed [s]';
COMMENT ON COLUMN ranked_sleeps.average_hrv IS 'Average heart rate variability, rMSSD, as the service says [ms]';
COMMENT ON COLUMN ranked_sleeps.temperature_deviation IS 'Deviation of the skin temperature from the person’s usual, of the readiness of this sleep [°C]';
COMMENT ON COLUMN ranked_sleeps.sk IS 'Number of the stored version; joins sleep and its series tables';

CREATE OR REPLACE VIEW counted_sleeps AS
SELECT
  user_id, day, sleep_id, type, main,
  NOT main AND NOT coalesce(
    bedtime_start < max(bedtime_end) FILTER (WHERE main) OVER (PARTITION BY user_id, day)
      AND bedtime_end > min(bedtime_start) FILTER (WHERE main) OVER (PARTITION BY user_id, day),
    false
  ) AS nap,
  bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset,
  bedtime_start_local, bedtime_end_local, midpoint_local, offset_change,
  time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
  latency, efficiency, restless_periods,
  average_heart_rate, lowest_heart_rate, average_hrv, average_breath,
  temperature_deviation, low_battery_alert, ring_id, sk
FROM ranked_sleeps;
COMMENT ON VIEW counted_sleeps IS 'The finished sleeps that count, and which of a day is the main one. Left out: types deleted and rest, and a sleep that goes on (no bedtime_end yet). Main is the longest long_sleep of the day; where there is none, the longest other sleep of more than 3 hours in bed; where there is none either, the longest whose middle lies from 21:00 to before 9:00 local time. A late_nap is never main, and a day with naps alone has no main sleep. Longest: by total_sleep_duration, then time_in_bed, then the earlier, then the one stored last. The others are naps, but not what overlaps the main sleep in time: it is the same night again, as when an edited one came under a new id (2.12)';
COMMENT ON COLUMN counted_sleeps.nap IS 'Whether this is a nap: not the main sleep of its day, nor overlapping it in time, as far as both starts are known';

CREATE OR REPLACE VIEW nights AS
SELECT
  user_id, day, sleep_id, type,
  bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset,
  bedtime_start_local, bedtime_end_local, midpoint_local, offset_change,
  time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
  latency, efficiency, restless_periods,
  average_heart_rate, lowest_heart_rate, average_hrv, average_breath,
  temperature_deviation, low_battery_alert, ring_id, sk
FROM ranked_sleeps
WHERE main;
-- example of nights: SELECT day, hhmm(total_sleep_duration) AS asleep, efficiency, average_hrv FROM nights WHERE user_id = 'ada' ORDER BY day DESC LIMIT 7
COMMENT ON VIEW nights IS 'The main sleep of each user and day, at most one; which one it is says counted_sleeps. A day without a row has no night: see night_missing of daily (2.12)';

CREATE OR REPLACE VIEW naps AS
SELECT
  user_id, day, sleep_id, type,
  bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset,
  bedtime_start_local, bedtime_end_local, midpoint_local, offset_change,
  time_in_bed, total_sleep_duration, awake_time, deep_sleep_duration, light_sleep_duration, rem_sleep_duration,
  latency, efficiency, restless_periods,
  average_heart_rate, lowest_heart_rate, average_hrv, average_breath,
  temperature_deviation, low_battery_alert, ring_id, sk
FROM counted_sleeps
WHERE nap;
COMMENT ON VIEW naps IS 'The counted sleeps beside the main one, one row each. What overlaps the main sleep in time is no nap, but the same night again (2.12)';
