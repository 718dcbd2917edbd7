-- Of each person a letter for each day: the worst that is known of it, in words of one letter.
-- s stored, h stored in part, e empty at the service, u not offered, f failed, n not authorised, p pending, o not asked; in capitals where the last reading failed.
WITH days AS (
  SELECT
    user_id, day,
    count(*) FILTER (state = 'stored') AS stored,
    count(*) FILTER (state IN ('failed', 'suspicious')) AS failed,
    count(*) FILTER (state = 'not_authorised') AS refused,
    count(*) FILTER (state = 'pending') AS pending,
    count(*) FILTER (state = 'not_asked') AS unasked,
    count(*) FILTER (is_daily AND state NOT IN ('stored', 'not_offered')) AS lacking,
    count(*) FILTER (is_daily AND state = 'empty') AS empty,
    count(*) FILTER (state = 'empty') AS read,
    bool_or(state = 'stored' AND regexp_matches(coalesce(reason, ''), '^(failed|suspicious|not_authorised) when last read')) AS is_old
  FROM (
    -- What comes every day to who wears the ring.
    SELECT *, $collection::VARCHAR IS NOT NULL OR collection IN ('daily_activity', 'daily_readiness', 'daily_sleep', 'heart_rate', 'sleep') AS is_daily
    FROM sync.coverage_between($from, $to)
  )
  WHERE day IS NOT NULL AND NOT is_removed AND ($collection::VARCHAR IS NULL OR collection = $collection::VARCHAR)
  GROUP BY user_id, day
),
letters AS (
  SELECT
    user_id, day, refused > 0 AS is_refused, empty > 0 AND failed + pending = 0 AS is_lacking,
    failed + pending + unasked > 0 OR is_old OR (stored = 0 AND refused > 0) AS is_missing,
    CASE
      WHEN failed > 0 THEN 'f'
      WHEN pending > 0 THEN 'p'
      WHEN stored > 0 THEN if(is_old, upper(if(lacking > 0, 'h', 's')), if(lacking > 0, 'h', 's'))
      WHEN refused > 0 THEN 'n'
      WHEN unasked > 0 THEN 'o'
      WHEN read > 0 THEN 'e'
      ELSE 'u'
    END AS letter
  FROM days
)
SELECT
  a.user_id AS id, a.state AS account, a.reason,
  string_agg(l.letter, '' ORDER BY l.day) AS letters,
  -- Days of which another reading may bring something.
  count(*) FILTER (l.is_missing) AS missing,
  count(*) FILTER (l.letter = 'f') AS failed,
  -- Days of which the service has nothing of what comes every day.
  count(*) FILTER (l.is_lacking) AS lacking,
  -- Days of which the service does not give everything.
  count(*) FILTER (l.is_refused) AS refused
FROM letters l JOIN sync.accounts a USING (user_id)
GROUP BY a.user_id, a.state, a.reason
ORDER BY a.user_id
