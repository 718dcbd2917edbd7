-- Heart rate and its variability in a day's sleeps: a row for each sample, those without a value too.
SELECT 'heart_rate' AS series, sk, epoch(ts) AS ts, value FROM sleep_heart_rate WHERE user_id = $user AND day = $day::DATE
UNION ALL
SELECT 'hrv', sk, epoch(ts) AS ts, value FROM sleep_hrv WHERE user_id = $user AND day = $day::DATE
ORDER BY series, sk, ts
