-- Of each person the nights, and the days whose wear is known: how many, how long worn in all, how many with so many hours.
SELECT
  user_id AS id,
  count(*) FILTER (NOT night_missing) AS nights,
  count(worn) AS known_days,
  coalesce(sum(worn), 0)::DOUBLE AS worn_seconds,
  coalesce(sum(recorded_time), 0)::DOUBLE AS recorded_seconds,
  count(*) FILTER (worn >= $hours * 3600) AS valid_days
FROM (
  SELECT user_id, day, night_missing, recorded_time, recorded_time - non_wear_time AS worn
  FROM daily WHERE day BETWEEN $from::DATE AND $to::DATE
)
GROUP BY user_id ORDER BY user_id
