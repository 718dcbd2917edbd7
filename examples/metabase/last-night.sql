-- Last night of everybody, beside what is usual for each. Table.
SELECT
  n.user_id AS person,
  n.day,
  hhmm(n.total_sleep_duration) AS asleep,
  n.average_hrv AS "HRV [ms]",
  b.median_28 AS "usual HRV [ms]",
  round(b.robust_z_28, 1) AS "away by [sd]",
  n.lowest_heart_rate AS "lowest heart rate [beats/min]",
  round(n.temperature_deviation, 2) AS "temperature [°C]"
FROM nights n
LEFT JOIN baselines b ON b.user_id = n.user_id AND b.day = n.day AND b.metric = 'average_hrv'
QUALIFY n.day = max(n.day) OVER (PARTITION BY n.user_id)
ORDER BY person
