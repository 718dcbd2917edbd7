-- What is known of the days of those metrics that do not come with the night, but with a document of their own.
SELECT metric, day::VARCHAR AS day, state, reason
FROM sync.coverage_between($from::DATE, $to::DATE, accounts := [$user])
JOIN (
  VALUES
    ('temperature_deviation', 'daily_readiness'),
    ('readiness_score', 'daily_readiness'),
    ('sleep_score', 'daily_sleep'),
    ('spo2_average', 'daily_spo2'),
    ('activity_score', 'daily_activity'),
    ('steps', 'daily_activity'),
    ('active_calories', 'daily_activity'),
    ('stress_high', 'daily_stress')
) AS sources(metric, collection) USING (collection)
WHERE day IS NOT NULL
