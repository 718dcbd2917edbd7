-- The last runs, with how far their windows are. Of the sweeps that went well, which come with each sync of a ring, only the last ones.
SELECT
  r.run_id AS id, r.kind, r.state, epoch(r.started_at) AS started, epoch(r.ended_at) AS ended, r.request->>'from' AS "from", r.request->>'to' AS "to",
  count(w.run_id) AS planned, count(*) FILTER (w.outcome = 'complete') AS done,
  count(*) FILTER (w.outcome IN ('failed', 'suspicious')) AS failed,
  coalesce(sum(w.requests), 0)::BIGINT AS requests, coalesce(sum(w.documents), 0)::BIGINT AS documents
FROM (
  SELECT * FROM sync.runs
  QUALIFY kind <> 'sweep' OR state <> 'complete' OR row_number() OVER (PARTITION BY kind, state ORDER BY started_at DESC) <= 3
  ORDER BY started_at DESC LIMIT 50
) r LEFT JOIN sync.windows w USING (run_id)
GROUP BY ALL ORDER BY started DESC
