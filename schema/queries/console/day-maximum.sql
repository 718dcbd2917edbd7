-- The highest heart rate that is to be expected, and where it is from, as in workouts.
SELECT
  CASE
    WHEN p.max_heart_rate IS NOT NULL THEN 'from participants'
    WHEN year($day::DATE) - p.birth_year BETWEEN 1 AND 150 THEN 'from the year of birth in participants'
    WHEN i.age IS NOT NULL THEN 'from age'
  END AS origin,
  coalesce(
    CAST(p.max_heart_rate AS DOUBLE),
    CASE WHEN year($day::DATE) - p.birth_year BETWEEN 1 AND 150 THEN 208 - 0.7::DOUBLE * (year($day::DATE) - p.birth_year) END,
    208 - 0.7::DOUBLE * i.age
  ) AS maximum
FROM (SELECT $user AS user_id) u
LEFT JOIN participants p USING (user_id)
LEFT JOIN (SELECT user_id, arg_max(age, sk) AS age FROM personal_info WHERE age BETWEEN 1 AND 150 GROUP BY user_id) i USING (user_id)
