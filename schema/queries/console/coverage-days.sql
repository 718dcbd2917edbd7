-- The first day that was ever planned and yesterday, as sync.coverage reckons it: by the service's clock where that is not ours.
SELECT
  min(start_at)::DATE::VARCHAR AS first,
  (sync.over_at(make_timestamp(epoch_us(now()) + coalesce(ahead, 0)), make_timestamp(epoch_us(now())))::DATE - 1)::VARCHAR AS last
FROM sync.windows, (
  -- One answer of three that is of another time is a mistake.
  SELECT list_median(arg_max(epoch_us(service_at) - epoch_us(read_at), requested_at, 3))::BIGINT AS ahead
  FROM sync.windows WHERE service_at IS NOT NULL AND requested_at IS NOT NULL
)
GROUP BY ahead
