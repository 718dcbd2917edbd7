-- How long each of the last events took from its arrival until its outcome was committed, in seconds, the quickest first.
SELECT lag, received FROM (
  SELECT greatest(0, epoch(settled_at) - epoch(received_at)) AS lag, epoch(received_at) AS received
  FROM sync.events WHERE settled_at IS NOT NULL AND outcome IN ('stored', 'unchanged', 'removed')
  ORDER BY received_at DESC LIMIT 2000
) ORDER BY lag
