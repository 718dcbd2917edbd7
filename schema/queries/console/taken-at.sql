-- When the snapshot was taken.
SELECT epoch(taken_at) AS taken_at FROM sync.snapshot
