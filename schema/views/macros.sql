-- Local time without time zones: a TIMESTAMP in UTC and its offset in seconds lie side by side in every table, and TIMESTAMPTZ makes
-- date functions many times slower and asks for a time zone that nobody stored.

CREATE OR REPLACE MACRO local(ts, utc_offset) AS
  make_timestamp(epoch_us(CAST(ts AS TIMESTAMP)) + CAST(utc_offset AS BIGINT) * 1000000);
COMMENT ON MACRO local IS 'Local time of a moment in UTC, by its offset [s]: local(bedtime_start, bedtime_start_offset). Null when either is null';

CREATE OR REPLACE MACRO night_of(ts, utc_offset) AS
  CAST(local(ts, utc_offset + 21600) AS DATE);
COMMENT ON MACRO night_of IS 'The day of waking that a moment in UTC counts to, by its offset [s]: the sleep day changes at 18:00 local time, what is at or after it belongs to the next day (2.12)';

CREATE OR REPLACE MACRO activity_day_of(ts, utc_offset) AS
  CAST(local(ts, utc_offset - 14400) AS DATE);
COMMENT ON MACRO activity_day_of IS 'The day of activity that a moment in UTC counts to, by its offset [s]: the 24 hours that start at 4 a.m. local time (2.5)';

CREATE OR REPLACE MACRO hhmm(seconds) AS
  CASE WHEN seconds <= -30 THEN '-' ELSE '' END
  || (CAST(round(abs(seconds) / 60) AS BIGINT) // 60) || ':' || lpad(CAST(CAST(round(abs(seconds) / 60) AS BIGINT) % 60 AS VARCHAR), 2, '0');
COMMENT ON MACRO hhmm IS 'A duration [s] as hours and minutes, rounded to the minute: hhmm(25500) is 7:05. Hours may exceed 24; negative ones begin with -; null stays null';
