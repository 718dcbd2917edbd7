-- The stages of a day's sleeps.
SELECT sleep_id, epoch(ts) AS start, seconds, stage
FROM sleep_stage_spans
WHERE user_id = $user AND day = $day::DATE AND seconds > 0
ORDER BY sleep_id, span
