-- The sleep scores of a person.
SELECT day::VARCHAR AS day, sleep_score AS score
FROM daily
WHERE user_id = $user AND day BETWEEN $from::DATE AND $to::DATE AND sleep_score IS NOT NULL
ORDER BY day
