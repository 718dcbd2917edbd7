/** Where a hostile statement would like to reach. */
export interface Targets {
  /** The data folder, with `warehouse.duckdb`, which is the file that is asked. */
  data: string;
  home: string;
  tmp: string;
  /** Of a web server on this machine. */
  port: number;
}

export interface Hostile {
  /** What it tries. */
  tries: string;
  sql: string;
  /** Refused in the words of DuckDB; harmless: ends by itself, with a result or not; bounded: may have to be stopped, or end its process. */
  fate: 'refused' | 'harmless' | 'bounded';
}

const fated =
  (fate: Hostile['fate']) =>
  (tries: string, ...statements: string[]): Hostile[] =>
    statements.map(sql => ({ tries, sql, fate }));
const refused = fated('refused');
const harmless = fated('harmless');
const bounded = fated('bounded');

/** Statements that must harm nobody, whatever becomes of them. */
export function hostileSql({ data, home, tmp, port }: Targets): Hostile[] {
  const file = `${data}/warehouse.duckdb`;
  const out = `${tmp}/out`;
  return [
    ...refused(
      'to read a file of the system',
      `SELECT * FROM read_csv('/etc/passwd', sep = ':', header = false)`,
      `SELECT * FROM read_text('/etc/passwd')`,
      `SELECT * FROM read_blob('/proc/self/environ')`,
      `SELECT * FROM '/etc/passwd'`,
      `SELECT * FROM sniff_csv('/etc/passwd')`,
      `SELECT content FROM read_text(['/etc/hostname', '/etc/passwd'])`,
      `FROM read_csv_auto('/dev/stdin')`,
    ),
    ...refused(
      'to read what else lies in the data folder',
      `SELECT * FROM read_text('${data}/accounts.secret')`,
      `SELECT * FROM read_text('${data}/secret.key')`,
      `SELECT * FROM read_blob('${data}/queue/*')`,
      `SELECT * FROM glob('${data}/**')`,
      `SELECT * FROM read_blob('${file}.wal')`,
      `SELECT * FROM read_blob('${file}')`,
      `SELECT * FROM read_json('${data}/service/state.json')`,
      `SELECT * FROM read_ndjson_objects('${data}/accounts.secret')`,
      `SELECT * FROM read_parquet('${home}/notes.parquet')`,
      `SELECT * FROM parquet_metadata('${home}/notes.parquet')`,
      `FROM '${home}/notes.csv'`,
      `FROM 'notes.csv'`,
      `SELECT * FROM read_csv('../*/notes.csv')`,
      `SELECT * FROM read_text('file://${home}/notes.csv')`,
    ),
    ...refused(
      'to reach the network',
      `SELECT * FROM read_csv('http://127.0.0.1:${port}/data.csv')`,
      `FROM 'https://127.0.0.1:${port}/data.parquet'`,
      `SELECT * FROM read_parquet('s3://bucket/data.parquet')`,
      `COPY (SELECT * FROM daily_stress) TO 'http://127.0.0.1:${port}/put.csv'`,
      `ATTACH 'http://127.0.0.1:${port}/other.duckdb' AS other`,
      `SELECT * FROM iceberg_scan('s3://bucket/table')`,
    ),
    ...refused(
      'to write over the warehouse by its own name, which DuckDB allows without external access',
      `COPY (SELECT 'x') TO '${file}' (FORMAT csv, USE_TMP_FILE false)`,
      `COPY (SELECT 'x') TO '${file}.wal' (FORMAT csv)`,
      `COPY (SELECT 'x') TO '${file}.wal.checkpoint' (FORMAT parquet)`,
      `COPY (SELECT 'x') TO '${file}.wal.recovery' (FORMAT json)`,
      `EXPLAIN ANALYZE COPY (SELECT 'x') TO '${file}' (FORMAT csv, USE_TMP_FILE false)`,
      `PREPARE w AS COPY (SELECT 'x') TO '${file}' (FORMAT csv, USE_TMP_FILE false); EXECUTE w`,
    ),
    ...refused(
      'to write a file',
      `COPY daily_stress TO '${out}.csv'`,
      `COPY daily_stress TO '${out}.parquet' (FORMAT parquet)`,
      `COPY (SELECT 1) TO '/dev/stdout'`,
      `COPY (SELECT 1) TO '${home}/.duckdbrc' (FORMAT csv)`,
      `EXPORT DATABASE '${out}'`,
      `IMPORT DATABASE '${out}'`,
      `COPY FROM DATABASE warehouse TO memory`,
      `SELECT 1; COPY (SELECT 2) TO '${out}.csv'; SELECT 3`,
    ),
    ...refused(
      'to open another database',
      `ATTACH '${out}.duckdb' AS other`,
      `ATTACH '${file}' AS again (READ_WRITE)`,
      `ATTACH '${data}/other.db' AS other (TYPE sqlite)`,
      `ATTACH 'dbname=postgres host=127.0.0.1' AS other (TYPE postgres)`,
      `ATTACH IF NOT EXISTS '${file}.wal' AS other`,
    ),
    // In memory, for the one statement.
    ...harmless(
      'to open a database in memory',
      `ATTACH ':memory:' AS other; CREATE TABLE other.t AS SELECT 1; FROM other.t`,
      'DETACH warehouse',
    ),
    ...refused(
      'to load code',
      'INSTALL httpfs',
      `LOAD '${home}/evil.duckdb_extension'`,
      'INSTALL spatial FROM community',
      'FORCE INSTALL sqlite',
      'UPDATE EXTENSIONS',
    ),
    ...refused(
      'to change the settings that hold it',
      'SET lock_configuration = false',
      'SET enable_external_access = true',
      `SET disabled_filesystems = ''`,
      'RESET disabled_filesystems',
      `SET temp_directory = '${tmp}/spill'`,
      `SET home_directory = '${home}'`,
      `SET log_query_path = '${out}.log'`,
      `PRAGMA log_query_path = '${out}.log'`,
      `SET profiling_output = '${out}.json'`,
      `PRAGMA profile_output = '${out}.json'`,
      `SET custom_user_agent = 'x'`,
      `SET allowed_paths = ['/etc/passwd']`,
      `SET allowed_directories = ['/']`,
      `SET GLOBAL memory_limit = '100GB'`,
      `SET extension_directory = '${tmp}'`,
      `SET secret_directory = '${tmp}'`,
      'SET allow_unsigned_extensions = true',
      `PRAGMA memory_limit = '100GB'`,
      `SELECT 1; SET enable_external_access = true; FROM read_text('/etc/passwd')`,
    ),
    ...refused('to log into a file', `CALL enable_logging(storage := 'file', storage_path := '${out}')`),
    ...harmless(
      'to log, and to profile',
      `CALL enable_logging(storage := 'stdout'); SELECT 1`,
      `SELECT * FROM enable_logging(); SELECT 1; FROM duckdb_logs`,
      `PRAGMA enable_profiling = 'json'; SELECT 1`,
      'PRAGMA enable_progress_bar; SELECT count(*) FROM range(1000000)',
    ),
    ...harmless(
      'to write what memory holds to the file',
      'CALL checkpoint()',
      'FORCE CHECKPOINT',
      'PRAGMA force_checkpoint',
      'VACUUM ANALYZE',
    ),
    ...refused(
      'to change the data',
      `INSERT INTO daily_stress (id) VALUES ('x')`,
      `UPDATE daily_stress SET day_summary = 'x'`,
      'DELETE FROM sync.runs',
      'DROP TABLE sleep',
      'ALTER TABLE sleep ADD COLUMN x INTEGER',
      'CREATE TABLE mine AS SELECT 1',
      'CREATE OR REPLACE VIEW mine AS SELECT 1',
      'CREATE SCHEMA mine',
      'TRUNCATE daily_stress',
      `BEGIN TRANSACTION; DELETE FROM daily_stress; COMMIT`,
      `SELECT 1; DELETE FROM daily_stress; SELECT 2`,
      'PREPARE d AS DELETE FROM daily_stress; EXECUTE d',
      `COMMENT ON TABLE sleep IS 'mine'`,
      `MERGE INTO daily_stress USING (SELECT 'x' AS id) s USING (id) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)`,
    ),
    ...refused(
      'to keep or to see secrets',
      `CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')`,
      `SELECT getenv('RINGNECK_SECRET_KEY')`,
      `SELECT current_setting('s3_secret_access_key')`,
    ),
    ...harmless('to see secrets', 'FROM duckdb_secrets()', 'SELECT name, value FROM duckdb_settings()', 'FROM pragma_database_list'),
    ...refused(
      'to hide what it does in text',
      `FROM query('COPY (SELECT 1) TO ''${out}.csv''')`,
      `FROM query('FROM read_text(''/etc/passwd'')')`,
      `FROM query_table('/etc/passwd')`,
      `CREATE TEMP MACRO f(p) AS TABLE FROM read_text(p); FROM f('/etc/passwd')`,
      `PREPARE r AS FROM read_text($1); EXECUTE r('/etc/passwd')`,
    ),
    ...bounded(
      'to take all memory, time or disk',
      'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3',
      'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r',
      'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, range(100)) SELECT sum(n) FROM r',
      `SELECT length(repeat('x', 4000000000))`,
      `SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)`,
      'SELECT list(range) FROM range(1000000000)',
      'SELECT length(range(1000000000000))',
      'SELECT * FROM generate_series(1, 1000000000000)',
      'SELECT range FROM range(2000000000) ORDER BY hash(range)',
      'SELECT DISTINCT hash(range) FROM range(2000000000)',
      `SELECT regexp_matches(repeat('a', 100000), '(((a{1,30}){1,30}){1,30}){1,30}b')`,
      `SELECT regexp_full_match(repeat('a', 1000000), '(a*)*(a*)*b')`,
      `CREATE TEMP TABLE t AS SELECT repeat('x', 1000) || range AS x FROM range(100000000); SELECT count(*) FROM t`,
      `SELECT list_reduce(range(10000000), (a, b) -> a || b) FROM range(1000)`,
      'SELECT * FROM range(100000) a, range(100000) b',
    ),
    ...bounded(
      'to break the parser',
      `SELECT ${'('.repeat(100_000)}1${')'.repeat(100_000)}`,
      `SELECT ${'1 + '.repeat(100_000)}1`,
      // 10 MB.
      `SELECT '${'x'.repeat(10 * 1024 * 1024)}'`,
      `SELECT ${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    ),
    ...harmless(
      'to confuse whoever reads its text or shows its result',
      `SELECT 1 ${'-- x\n'.repeat(100_000)}`,
      `${'SELECT 1;'.repeat(5_000)}`,
      `SELECT ${Array.from({ length: 20_000 }, (_, i) => `1 AS c${i}`).join(', ')}`,
      'SELECT 1 \0 FROM sleep',
      Buffer.from([0x53, 0x45, 0x4c, 0x45, 0x43, 0x54, 0x20, 0x27, 0xff, 0xfe, 0xc0, 0x27]).toString(),
      `SELECT '\ud800'`,
      `SELECT '\u202egnirts\u202c' AS "\u0000"`,
      `SELECT 1 AS "\u001b]0;title\u0007"`,
      `SELECT chr(27) || '[2J' || chr(155) || 'H' AS "a\nb\u001b[31m"`,
      `SELECT error(chr(27) || '[31m' || chr(155) || 'red')`,
      '/* never closed',
      `SELECT $$ never closed`,
    ),
  ];
}
