CREATE OR REPLACE VIEW heart_rate_all AS
SELECT
  user_id, CAST(local(ts, utc_offset) AS DATE) AS day, ts, utc_offset, CAST(bpm AS DOUBLE) AS bpm,
  source, 'heart_rate' AS origin, CAST(NULL AS BIGINT) AS sk
FROM heart_rate
UNION ALL
SELECT user_id, CAST(local(ts, utc_offset) AS DATE), ts, utc_offset, value, 'sleep', 'sleep', sk
FROM sleep_heart_rate
WHERE value IS NOT NULL
UNION ALL
SELECT user_id, CAST(local(ts, utc_offset) AS DATE), ts, utc_offset, value, 'session', 'session', sk
FROM session_heart_rate
WHERE value IS NOT NULL;
COMMENT ON VIEW heart_rate_all IS 'All measurements of the heart rate on one axis of time: the rows of heart_rate (2.14) and the samples of sleeps (2.12, of every type) and sessions (2.13), samples without a value left out. One moment may be there twice, from two origins: choose one of them for averages. Filter by user_id and ts';
COMMENT ON COLUMN heart_rate_all.user_id IS 'The account, as named by `account add`';
COMMENT ON COLUMN heart_rate_all.day IS 'Calendar day of ts at utc_offset; not the day of the sleep. A filter on ts is faster';
COMMENT ON COLUMN heart_rate_all.ts IS 'When the heart rate was measured, UTC';
COMMENT ON COLUMN heart_rate_all.utc_offset IS 'Local time less UTC: of samples when recording started; of heart_rate as the service wrote it, mostly 0, which says nothing of where the person was [s]';
COMMENT ON COLUMN heart_rate_all.bpm IS 'Heart rate [beats/min]';
COMMENT ON COLUMN heart_rate_all.source IS 'What the person did: of heart_rate as the service says (awake, workout, rest, sleep, live, session); else sleep or session';
COMMENT ON COLUMN heart_rate_all.origin IS 'Where the row comes from: heart_rate, sleep or session';
COMMENT ON COLUMN heart_rate_all.sk IS 'The version of the document, sk of sleep or session; null for rows of heart_rate';
