import { DuckDBInstance } from '@duckdb/node-api';

/** What read_json is to make of a document; a column that is not named here would have to be guessed from a sample of the rows. */
const DOCUMENT = `STRUCT(
  id VARCHAR, active_calories BIGINT, average_met_minutes DOUBLE, class_5_min VARCHAR,
  contributors STRUCT(meet_daily_targets BIGINT, move_every_hour BIGINT, recovery_time BIGINT, stay_active BIGINT, training_frequency BIGINT, training_volume BIGINT),
  day DATE, equivalent_walking_distance BIGINT, high_activity_met_minutes BIGINT, high_activity_time BIGINT, inactivity_alerts BIGINT,
  low_activity_met_minutes BIGINT, low_activity_time BIGINT, medium_activity_met_minutes BIGINT, medium_activity_time BIGINT,
  met STRUCT("interval" DOUBLE, items DOUBLE[], "timestamp" VARCHAR),
  meters_to_target BIGINT, non_wear_time BIGINT, resting_time BIGINT, score BIGINT, sedentary_met_minutes BIGINT, sedentary_time BIGINT,
  steps BIGINT, target_calories BIGINT, target_meters BIGINT, "timestamp" VARCHAR, total_calories BIGINT)`;

const MET = `STRUCT(id VARCHAR, day DATE, met STRUCT("interval" DOUBLE, items DOUBLE[], "timestamp" VARCHAR))`;

const TABLES = [
  `CREATE TABLE daily_activity (
  user_id VARCHAR, id VARCHAR, day DATE, active_calories BIGINT, average_met_minutes DOUBLE, class_5_min VARCHAR,
  contributors_meet_daily_targets BIGINT, contributors_move_every_hour BIGINT, contributors_recovery_time BIGINT,
  contributors_stay_active BIGINT, contributors_training_frequency BIGINT, contributors_training_volume BIGINT,
  equivalent_walking_distance BIGINT, high_activity_met_minutes BIGINT, high_activity_time BIGINT, inactivity_alerts BIGINT,
  low_activity_met_minutes BIGINT, low_activity_time BIGINT, medium_activity_met_minutes BIGINT, medium_activity_time BIGINT,
  met_start TIMESTAMP, met_offset INTEGER, met_interval DOUBLE, met_count BIGINT, meters_to_target BIGINT, non_wear_time BIGINT,
  resting_time BIGINT, score BIGINT, sedentary_met_minutes BIGINT, sedentary_time BIGINT, steps BIGINT, target_calories BIGINT,
  target_meters BIGINT, "timestamp" TIMESTAMP, timestamp_offset INTEGER, total_calories BIGINT,
  extra JSON, sk BIGINT, fetched_at TIMESTAMP, content_hash VARCHAR)`,
  `CREATE TABLE daily_activity_met (sk BIGINT, user_id VARCHAR, day DATE, ts TIMESTAMP, utc_offset INTEGER, value DOUBLE)`,
];

/** Seconds east of UTC of a text that ends in +hh:mm. */
const offsetOf = (text: string) =>
  `(CASE ${text}[-6] WHEN '-' THEN -1 ELSE 1 END * (${text}[-5:-4]::INTEGER * 3600 + ${text}[-2:]::INTEGER * 60))`;

/** Microseconds since the epoch: a cast to TIMESTAMP drops the offset. */
const microsOf = (text: string) => `(epoch_us(${text}[:-7]::TIMESTAMP) - ${offsetOf(text)}::BIGINT * 1000000)`;

const read = (files: string, document: string) =>
  `(SELECT parse_filename(filename)[:-14] AS user_id, unnest(data) AS d
    FROM read_json('${files}', columns = {data: '${document.replaceAll(/\s+/g, ' ')}[]'}, format = 'unstructured', filename = true))`;

// The files are read twice: exploding from one table of documents uses one thread, while the other one waits busily in half of all runs.
const load = (files: string) => [
  `INSERT INTO daily_activity
   SELECT user_id, d.id, d.day, d.active_calories, d.average_met_minutes, d.class_5_min, d.contributors.meet_daily_targets,
     d.contributors.move_every_hour, d.contributors.recovery_time, d.contributors.stay_active, d.contributors.training_frequency,
     d.contributors.training_volume, d.equivalent_walking_distance, d.high_activity_met_minutes, d.high_activity_time,
     d.inactivity_alerts, d.low_activity_met_minutes, d.low_activity_time, d.medium_activity_met_minutes, d.medium_activity_time,
     make_timestamp(${microsOf('d.met."timestamp"')}), ${offsetOf('d.met."timestamp"')}, d.met."interval", len(d.met.items),
     d.meters_to_target, d.non_wear_time, d.resting_time, d.score, d.sedentary_met_minutes, d.sedentary_time, d.steps, d.target_calories,
     d.target_meters, make_timestamp(${microsOf('d."timestamp"')}), ${offsetOf('d."timestamp"')}, d.total_calories, NULL,
     row_number() OVER (), now()::TIMESTAMP, NULL
   FROM ${read(files, DOCUMENT)}`,
  `INSERT INTO daily_activity_met
   SELECT sk, user_id, day, make_timestamp(start + (i - 1) * step), utc_offset, value
   FROM (SELECT sk, user_id, d.day AS day, ${microsOf('d.met."timestamp"')} AS start, (d.met."interval" * 1000000)::BIGINT AS step,
           ${offsetOf('d.met."timestamp"')} AS utc_offset, unnest(d.met.items) AS value, generate_subscripts(d.met.items, 1) AS i
         FROM ${read(files, MET)} JOIN (SELECT user_id AS owner, id, sk FROM daily_activity) ON owner = user_id AND id = d.id)`,
];

/** A new file with the two tables of daily_activity, to be filled by DuckDB's own means. */
export async function openLimit(path: string) {
  const instance = await DuckDBInstance.create(path, { threads: '2' });
  const connection = await instance.connect();
  for (const statement of TABLES) await connection.run(statement);
  return {
    /** Loads the answers in files named `<user>.0000001.json`, as well as one can in SQL. */
    async load(files: string): Promise<void> {
      await connection.run('BEGIN TRANSACTION');
      for (const statement of load(files)) await connection.run(statement);
      await connection.run('COMMIT');
    },
    close(): void {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Of the name of a file that `load` is given. */
export const answerFile = (user: string, page: number) => `${user}.${String(page).padStart(7, '0')}.json`;
