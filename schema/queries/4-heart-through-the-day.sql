-- The heart through the day, by hour of local time: five minutes first, because a workout is measured far more often than rest
WITH zones AS (SELECT user_id, day, any_value(timestamp_offset) AS utc_offset FROM daily_activity GROUP BY ALL),
five_minutes AS (
  SELECT hour(local(h.ts, z.utc_offset)) AS hour, avg(bpm) AS bpm, count(*) AS measurements
  FROM heart_rate h JOIN zones z ON z.user_id = h.user_id AND z.day = h.ts::DATE
  GROUP BY h.user_id, hour, time_bucket(INTERVAL 5 MINUTES, h.ts)
)
SELECT hour, round(avg(bpm), 1) AS bpm, sum(measurements)::BIGINT AS measurements, bar(avg(bpm), 40, 100, 30) AS " "
FROM five_minutes GROUP BY hour ORDER BY hour;
