-- How many people there are, and the collections whose documents belong to days.
SELECT
  (SELECT count(*) FROM sync.accounts WHERE state <> 'removed') AS people,
  (SELECT string_agg(collection, ' ' ORDER BY collection) FROM sync.collections WHERE dated) AS collections
