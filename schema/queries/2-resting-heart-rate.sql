-- Where is the resting heart rate going?
PIVOT (SELECT user_id, strftime(day, '%Y-%m') AS month, lowest_heart_rate FROM nights)
ON user_id USING round(avg(lowest_heart_rate), 1) GROUP BY month ORDER BY month;
