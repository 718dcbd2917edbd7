-- The moment of a reading that tells which days were over then: that of the service's clock; ours where it shows none; where the two are of
-- one time, as sandboxes of other years are not, the earlier one, for either may be wrong.
CREATE OR REPLACE MACRO sync.over_at(service_at, read_at) AS
  CASE WHEN abs(epoch_us(service_at) - epoch_us(read_at)) <= 31 * 86400000000 THEN least(service_at, read_at) ELSE coalesce(service_at, read_at) END;
COMMENT ON MACRO sync.over_at IS 'Of a row of sync.windows the moment that tells which days were over when it was read: service_at, or the earlier of service_at and read_at where they are at most 31 days apart, or read_at where there is no service_at';

-- What is known of each account, collection and day, from the ledger and the documents. For each day the reading that covers it and was
-- settled last decides. What is stored is never called missing, unless only a part of it may be there: pages are stored as they come. What is
-- no list of accounts is all of them: a lake keeps no default that is NULL, nor one that is a list.
CREATE OR REPLACE MACRO sync.coverage_between(first_day, last_day, accounts := 'all') AS TABLE
WITH
  -- Numbers of days since 1970: lists of them are cheaper than lists of dates.
  bounds AS (
    SELECT date_diff('day', DATE '1970-01-01', first_day::DATE) AS first_n,
           date_diff('day', DATE '1970-01-01', last_day::DATE) AS last_n
  ),
  readings AS (
    SELECT w.user_id, w.collection, w.outcome AS ended, w.rowid AS number, w.rows_by_day, w.rejected_undated,
           date_diff('day', TIMESTAMP '1970-01-01', w.start_at) AS start_n,
           date_diff('day', TIMESTAMP '1970-01-01', w.end_at) AS end_n,
           CASE WHEN w.outcome <> 'stopped' THEN w.committed_at END AS settled_at,
           CASE WHEN w.outcome = 'complete' THEN w.requested_at END AS read_order,
           CASE WHEN w.outcome = 'complete' THEN sync.over_at(w.service_at, w.read_at) END AS read_at,
           CASE WHEN w.outcome = 'stopped' THEN 1 END AS stopped,
           -- A run's row comes after all its windows: those of a plan that was killed are never read.
           CASE WHEN w.outcome IS NULL THEN r.started_at END AS open_since
    FROM sync.windows w LEFT JOIN sync.runs r ON r.run_id = w.run_id
    -- What lay in the future when it was its turn was not asked for.
    WHERE (w.outcome IS DISTINCT FROM 'complete' OR w.requested_at IS NOT NULL)
      AND (TRY_CAST(accounts AS VARCHAR[]) IS NULL OR (w.user_id BETWEEN list_min(TRY_CAST(accounts AS VARCHAR[])) AND list_max(TRY_CAST(accounts AS VARCHAR[])) AND list_contains(TRY_CAST(accounts AS VARCHAR[]), w.user_id)))
  ),
  readings_by_day AS (
    SELECT user_id, collection, start_n, number, rows_by_day, settled_at, read_order, read_at, stopped, open_since,
           unnest(CASE WHEN start_n IS NULL THEN [NULL] ELSE range(greatest(start_n, first_n), least(end_n, last_n + 1)) END) AS n
    FROM readings CROSS JOIN bounds
  ),
  -- Of each day the numbers of the windows that decide: by outcome, and by what was read.
  latest AS (
    SELECT user_id, collection, n,
           arg_max(number, settled_at) AS settled, max(settled_at) AS settled_at, max(open_since) AS open_since,
           arg_max(number, read_order) AS read, arg_max(read_at, read_order) AS read_at, max(stopped) AS stopped
    FROM readings_by_day GROUP BY user_id, collection, n
  ),
  heart_counts AS (
    SELECT number, start_n, rows_by_day::VARCHAR::BIGINT[] AS counts FROM readings WHERE rows_by_day IS NOT NULL
  ),
  -- Days that a range without an end may have brought in part: documents are asked for from two days before a window to two days behind it.
  begun AS (
    SELECT DISTINCT user_id, collection,
           unnest(CASE WHEN start_n IS NULL THEN [NULL] ELSE range(greatest(start_n - 2, first_n), least(end_n + 2, last_n + 1)) END) AS n
    FROM readings CROSS JOIN bounds
    WHERE read_order IS NULL AND ended IS DISTINCT FROM 'not_offered' AND coalesce(settled_at IS NOT NULL OR open_since IS NOT NULL OR stopped = 1, false)
  ),
  undated AS (
    SELECT number, rejected_undated FROM readings WHERE rejected_undated > 0
  ),
  known AS (
    SELECT l.user_id, l.collection, l.n, l.settled_at, l.open_since, l.read_at, l.stopped, w.outcome, w.reason,
           -- A reading that began before the day (UTC) was over does not tell that it is empty, nor that all of it came.
           l.read IS NOT NULL AND (l.n IS NULL OR epoch_us(l.read_at) >= (l.n + 1) * 86400000000) AS is_whole,
           CASE WHEN l.collection = 'heart_rate' AND l.read IS NOT NULL
                THEN if(h.number IS NULL, -1, coalesce(h.counts[l.n - h.start_n + 1], 0)) END AS heart_rows,
           u.rejected_undated
    FROM latest l LEFT JOIN sync.windows w ON w.rowid = l.settled LEFT JOIN heart_counts h ON h.number = l.read
    LEFT JOIN undated u ON u.number = l.read
  ),
  -- Windows of an earlier version were written without counts: only of their days are the rows counted.
  uncounted AS (
    SELECT k.user_id, k.collection, k.n, count(*) AS heart_rows
    FROM (SELECT user_id, collection, n FROM known WHERE heart_rows = -1) k
    JOIN main.heart_rate h ON h.user_id = k.user_id AND date_diff('day', TIMESTAMP '1970-01-01', h.ts) = k.n
    WHERE (first_day IS NULL OR h.ts >= first_day::DATE) AND (last_day IS NULL OR h.ts < last_day::DATE + 1)
    GROUP BY k.user_id, k.collection, k.n
  ),
  stored AS (
    SELECT user_id, collection, date_diff('day', DATE '1970-01-01', day) AS n, documents, rejected
    FROM sync.document_days
    WHERE (day IS NULL OR day BETWEEN first_day::DATE AND last_day::DATE)
      AND (TRY_CAST(accounts AS VARCHAR[]) IS NULL OR (user_id BETWEEN list_min(TRY_CAST(accounts AS VARCHAR[])) AND list_max(TRY_CAST(accounts AS VARCHAR[])) AND list_contains(TRY_CAST(accounts AS VARCHAR[]), user_id)))
  ),
  -- Of each collection how its last reading ended, and when it last answered: the service may refuse it to an account that is active.
  answers AS (
    SELECT user_id, collection, max(committed_at) AS refused_at, arg_max(outcome, committed_at) AS outcome,
           arg_max(coalesce(reason, ''), committed_at) AS reason,
           max(committed_at) FILTER (outcome = 'complete' AND requested_at IS NOT NULL) AS answered_at
    FROM sync.windows
    WHERE outcome <> 'stopped'
      AND (TRY_CAST(accounts AS VARCHAR[]) IS NULL OR (user_id BETWEEN list_min(TRY_CAST(accounts AS VARCHAR[])) AND list_max(TRY_CAST(accounts AS VARCHAR[])) AND list_contains(TRY_CAST(accounts AS VARCHAR[]), user_id)))
    GROUP BY user_id, collection
  ),
  places AS (
    SELECT a.user_id, c.collection, c.dated, a.state = 'removed' AS is_removed, a.state = 'active' AS is_active, r.answered_at,
           CASE WHEN a.state = 'parked' OR (a.state = 'active' AND r.outcome = 'not_authorised' AND r.refused_at > a.since)
                THEN 'not_authorised' ELSE 'not_asked' END AS unasked,
           CASE WHEN a.state <> 'active' THEN 'the account is ' || a.state || coalesce(': ' || a.reason, '')
                WHEN r.outcome = 'not_authorised' AND r.refused_at > a.since THEN r.reason END AS unasked_reason
    FROM sync.accounts a CROSS JOIN sync.collections c
    LEFT JOIN answers r ON r.user_id = a.user_id AND r.collection = c.collection
    WHERE TRY_CAST(accounts AS VARCHAR[]) IS NULL OR list_contains(TRY_CAST(accounts AS VARCHAR[]), a.user_id)
  ),
  cells AS (
    SELECT user_id, collection, unnest(CASE WHEN dated THEN range(first_n, last_n + 1) ELSE [NULL] END) AS n,
           is_removed, is_active, answered_at, unasked, unasked_reason
    FROM places CROSS JOIN bounds
  ),
  facts AS (
    SELECT c.user_id, c.collection, c.n, c.is_removed, c.unasked, c.unasked_reason, k.outcome, k.reason, k.read_at, k.stopped,
           coalesce(nullif(k.heart_rows, -1), u.heart_rows, s.documents, 0) AS documents,
           coalesce(s.rejected, 0) AS rejected, k.rejected_undated IS NOT NULL AS is_unclear,
           b.user_id IS NOT NULL AND k.is_whole IS DISTINCT FROM true AS is_partial,
           k.open_since IS NOT NULL AND (k.settled_at IS NULL OR k.open_since > k.settled_at) AS is_open,
           k.outcome = 'complete' AND k.is_whole AS is_read,
           -- The service takes other requests of the collection since, or nobody knows: its account has got a new token or was resumed.
           (k.outcome = 'not_authorised' AND c.is_active AND c.unasked = 'not_asked')
             OR (k.outcome = 'not_offered' AND c.answered_at > k.settled_at) AS is_outdated
    FROM cells c
    LEFT JOIN known k ON k.user_id = c.user_id AND k.collection = c.collection AND k.n IS NOT DISTINCT FROM c.n
    LEFT JOIN begun b ON b.user_id = c.user_id AND b.collection = c.collection AND b.n IS NOT DISTINCT FROM c.n
    LEFT JOIN uncounted u ON u.user_id = c.user_id AND u.collection = c.collection AND u.n = c.n
    LEFT JOIN stored s ON s.user_id = c.user_id AND s.collection = c.collection AND s.n IS NOT DISTINCT FROM c.n
  ),
  judged AS (
    SELECT user_id, collection, n, is_removed, unasked, unasked_reason, outcome, reason, read_at, stopped, documents, rejected, is_read, is_unclear, is_outdated,
           CASE WHEN outcome = 'suspicious' THEN if(is_open, 'pending', 'suspicious')
                WHEN documents > 0 AND NOT is_partial THEN 'stored'
                WHEN rejected > 0 THEN 'failed'
                WHEN is_read AND is_unclear THEN if(is_open, 'pending', 'failed')
                WHEN is_read THEN 'empty'
                WHEN is_open THEN 'pending'
                WHEN is_outdated OR outcome IS NULL OR outcome = 'complete' THEN unasked
                ELSE outcome END AS state
    FROM facts
  )
SELECT user_id, collection, CASE WHEN n IS NOT NULL THEN DATE '1970-01-01' + n::INTEGER END AS day, state,
       CASE WHEN state = 'stored' AND outcome = 'complete' AND NOT is_read
            THEN 'last read before the day was over' || if(rejected > 0, '; not all that came could be stored (sync.rejected)', '')
            WHEN state = 'stored' AND rejected > 0 THEN 'not all that came could be stored (sync.rejected)'
            WHEN state = 'stored' AND outcome = 'not_authorised' AND is_outdated THEN 'was refused when last read, and may be asked again'
            WHEN state = 'stored' AND outcome <> 'complete' THEN outcome || ' when last read' || coalesce(': ' || reason, '')
            WHEN state = 'failed' AND rejected > 0 AND outcome IS DISTINCT FROM 'failed' THEN 'what came could not be stored (sync.rejected)'
            WHEN state = 'failed' AND is_unclear AND outcome = 'complete'
            THEN 'what came could not be stored' || if(n IS NULL, '', ', and its day is unknown') || ' (sync.rejected)'
            WHEN state IN ('failed', 'suspicious', 'not_offered') OR (state = 'not_authorised' AND outcome = state) THEN reason
            WHEN state = 'pending' THEN CASE WHEN outcome <> 'complete' THEN outcome || ' before' || coalesce(': ' || reason, '') END
            WHEN state = unasked AND unasked_reason IS NOT NULL THEN unasked_reason
            WHEN state = 'not_asked' AND outcome = 'complete' THEN 'last read before the day was over'
            WHEN state = 'not_asked' AND outcome = 'not_authorised' THEN 'was refused, and may be asked again'
            WHEN state = 'not_asked' AND outcome = 'not_offered' THEN 'was not offered, and is now'
            WHEN state = 'not_asked' AND stopped = 1 THEN 'its run was stopped'
            WHEN state = 'not_asked' AND documents > 0 THEN 'read beside other days only, and not to the end' END AS reason,
       documents, read_at, is_removed
FROM judged;
COMMENT ON MACRO TABLE sync.coverage_between IS 'sync.coverage of the days from first_day to last_day, both included, accounts that were removed too (is_removed): FROM sync.coverage_between(''2025-01-01'', ''2025-01-31''); of these accounts alone: accounts := [''ada'']';

CREATE OR REPLACE VIEW sync.coverage AS
WITH
  -- How far the service's clock was ahead of ours when it was last asked: one answer that is of another time than the two before it is a mistake.
  service_clock AS (
    SELECT coalesce(if(abs(last[1] - last[2]) > 31 * 86400000000 AND abs(last[2] - last[3]) <= 31 * 86400000000, last[2], last[1]), 0) AS ahead
    FROM (SELECT arg_max(epoch_us(service_at) - epoch_us(read_at), requested_at, 3) FILTER (service_at IS NOT NULL AND requested_at IS NOT NULL) AS last
          FROM sync.windows)
  ),
  service_days AS (SELECT sync.over_at(make_timestamp(epoch_us(now()) + ahead), make_timestamp(epoch_us(now())))::DATE - 1 AS yesterday FROM service_clock)
SELECT user_id, collection, day, state, reason, documents, read_at
FROM sync.coverage_between(
  (SELECT least(min(w.start_at)::DATE, (SELECT yesterday FROM service_days))
   FROM sync.windows w SEMI JOIN sync.accounts a ON a.user_id = w.user_id AND a.state <> 'removed'),
  (SELECT yesterday FROM service_days)
)
WHERE NOT is_removed;
COMMENT ON VIEW sync.coverage IS 'What is known of each account, collection and day, from the first day that was planned to yesterday (UTC, by the service''s clock and, where that is within 31 days, by ours): proof that nothing is missing. Other days: sync.coverage_between';
COMMENT ON COLUMN sync.coverage.user_id IS 'The account, as named by `account add`';
COMMENT ON COLUMN sync.coverage.collection IS 'The collection: a table of documents, or heart_rate';
COMMENT ON COLUMN sync.coverage.day IS 'The day of the documents; for heart_rate the day in UTC; null where a collection has no dates';
COMMENT ON COLUMN sync.coverage.state IS 'stored; empty (at the service: a complete reading that began after the day (UTC) was over brought nothing of it); not_offered (the collection answers 404); not_authorised (token, membership or permission); failed (read last without success and never to its end, or what came could not be stored); suspicious (an answer that cannot be, over stored documents); pending (planned, not yet read); not_asked';
COMMENT ON COLUMN sync.coverage.reason IS 'Why, where it is neither empty nor simply stored';
COMMENT ON COLUMN sync.coverage.documents IS 'Stored documents of the day; for heart_rate the rows that came when it was last read [count]';
COMMENT ON COLUMN sync.coverage.read_at IS 'When the request of the last complete reading of the day was sent, UTC, as sync.over_at tells it; null where it was never read by its range';
