-- The version of DuckDB that reads the snapshot.
SELECT version() AS version
