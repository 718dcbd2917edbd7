-- Nights after stressful and other days. Bar chart: the stress of the day across, HRV up, a series for each person.
SELECT d.user_id AS person, d.stress_summary AS "stress of the day", count(*) AS nights, round(avg(n.average_hrv), 1) AS "HRV [ms]"
FROM daily d
JOIN nights n ON n.user_id = d.user_id AND n.day = d.day + 1
WHERE d.stress_summary IS NOT NULL
GROUP BY ALL
ORDER BY ALL
