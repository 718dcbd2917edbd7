-- after: nights
-- One absurd sample must not end the query of everybody: the square of more than 1e150 is no number.

CREATE OR REPLACE VIEW hrv_nights AS
SELECT
  user_id,
  day,
  nights.sleep_id,
  any_value(nights.average_hrv) AS average_hrv,
  count(hrv.ts) AS samples,
  count(hrv.value) AS samples_with_value,
  avg(hrv.value) AS mean_hrv,
  median(hrv.value) AS median_hrv,
  stddev_samp(CASE WHEN abs(hrv.value) < 1e100 THEN hrv.value END) AS sd_hrv,
  min(hrv.value) AS lowest_hrv,
  max(hrv.value) AS highest_hrv,
  avg(hrv.value) FILTER (WHERE hrv.ts < nights.middle) AS first_half_hrv,
  avg(hrv.value) FILTER (WHERE hrv.ts >= nights.middle) AS second_half_hrv
FROM (SELECT *, bedtime_start + (bedtime_end - bedtime_start) / 2 AS middle FROM nights) AS nights
LEFT JOIN sleep_hrv AS hrv USING (user_id, day, sk)
GROUP BY user_id, day, nights.sleep_id;
COMMENT ON VIEW hrv_nights IS 'Heart rate variability of each night: the samples of the main sleep, summed up. A night without samples has a row with samples 0 (2.12)';
COMMENT ON COLUMN hrv_nights.day IS 'Day of waking, as the service says';
COMMENT ON COLUMN hrv_nights.sleep_id IS 'Identifier of the main sleep, id of sleep';
COMMENT ON COLUMN hrv_nights.average_hrv IS 'Average as the service says, average_hrv of sleep, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.samples IS 'Number of samples in sleep_hrv [count]';
COMMENT ON COLUMN hrv_nights.samples_with_value IS 'Number of those that have a value; all that follows is of them [count]';
COMMENT ON COLUMN hrv_nights.mean_hrv IS 'Mean of the samples, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.median_hrv IS 'Median of the samples, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.sd_hrv IS 'Standard deviation of the samples; null with fewer than two. Samples of 1e100 and more, of either sign, count as missing [ms]';
COMMENT ON COLUMN hrv_nights.lowest_hrv IS 'Lowest sample, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.highest_hrv IS 'Highest sample, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.first_half_hrv IS 'Mean of the samples before the middle between bedtime_start and bedtime_end, rMSSD [ms]';
COMMENT ON COLUMN hrv_nights.second_half_hrv IS 'Mean of the samples from that middle on, rMSSD [ms]';
