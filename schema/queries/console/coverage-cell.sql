-- What is known of one day of a person, by collection, with the reading that was settled last.
SELECT
  c.collection, c.state, c.reason, c.documents, epoch(c.read_at) AS read_at, w.run_id AS run, r.kind AS run_kind, r.state AS run_state
FROM sync.coverage_between($day, $day, accounts := [$user::VARCHAR]) c
LEFT JOIN (
  SELECT collection, start_at IS NULL AS undated, run_id
  FROM sync.windows
  WHERE user_id = $user::VARCHAR
    AND (start_at IS NULL OR (start_at < $day::DATE + 1 AND end_at > $day::DATE))
  QUALIFY row_number() OVER (PARTITION BY collection ORDER BY committed_at DESC NULLS LAST) = 1
) w ON w.collection = c.collection AND w.undated = (c.day IS NULL)
LEFT JOIN sync.runs r ON r.run_id = w.run_id
ORDER BY c.day IS NULL, c.collection
