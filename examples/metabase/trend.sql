-- One metric of one person with the band of what is usual. Line chart: day across; value, low and high up; missing values: nothing.
-- Variables: person (text, required), metric (text, required, default average_hrv), first_day and last_day (date).
SELECT day, value, median_28 - 1.4826 * mad_28 AS low, median_28 + 1.4826 * mad_28 AS high
FROM baselines
WHERE user_id = {{person}} AND metric = {{metric}}
[[AND day >= {{first_day}}]]
[[AND day <= {{last_day}}]]
ORDER BY day
