import type { FieldKind } from '../schema/fields.ts';
import { type Field, type LeafField, type Mapping, mapResource } from '../src/warehouse/mapping.ts';
import { quoteName } from '../src/warehouse/sql.ts';
import { createTable, listTables, type Table } from '../src/warehouse/tables.ts';
import type { LimitSql } from './limit.ts';
import { HEART_RATE, resourceNamed } from './recording.ts';

const SAMPLE = 'STRUCT("interval" DOUBLE, items DOUBLE[], "timestamp" VARCHAR)';
const TYPES: Record<FieldKind, string> = {
  text: 'VARCHAR',
  integer: 'BIGINT',
  number: 'DOUBLE',
  flag: 'BOOLEAN',
  day: 'DATE',
  instant: 'VARCHAR',
  sample: SAMPLE,
  texts: 'JSON',
  objects: 'JSON',
};
const HEART_RATE_ROW = 'STRUCT("timestamp" VARCHAR, timestamp_unix BIGINT, bpm BIGINT, source VARCHAR)';

/** @param answers a folder with a folder of answers for each collection, in files as `answerFile` names them */
export function writeLimitSql(collections: readonly string[], answers: string): LimitSql {
  const mappings = collections.filter(name => name !== HEART_RATE).map(name => mapResource(resourceNamed(name)));
  const wanted = new Set(listLimitTables(collections));
  return {
    create: listTables(mappings)
      .filter(({ name }) => wanted.has(name))
      .map(table => createTable(table)[0]!),
    load: collections.flatMap(name => {
      const files = `${answers}/${name}/*.json`;
      const mapping = mappings.find(({ table }) => table === name);
      return mapping
        ? [loadDocuments(mapping, files), ...mapping.series.map(series => loadSamples(mapping, series, files))]
        : [loadHeartRate(files)];
    }),
  };
}

/** The tables that collections are stored in. */
export const listLimitTables = (collections: readonly string[]): Table['name'][] =>
  collections.flatMap(name =>
    name === HEART_RATE ? [name] : [name, ...mapResource(resourceNamed(name)).series.map(({ table }) => table)],
  );

function loadDocuments({ table, root, columns }: Mapping, files: string): string {
  const values = leavesOf(root).flatMap(({ about, path, column }) => {
    const value = ['d', ...path.map(quoteName)].join('.');
    const parts =
      about.kind === 'sample'
        ? [momentOf(`${value}."timestamp"`), offsetOf(`${value}."timestamp"`), `${value}."interval"`, `len(${value}.items)`]
        : about.kind === 'instant'
          ? [momentOf(value), offsetOf(value)]
          : [value];
    return parts.map((part, i) => `${part} AS ${quoteName(columns[column + i]!.name)}`);
  });
  return `INSERT INTO ${table} BY NAME
   SELECT user_id, ${values.join(', ')}, (SELECT coalesce(max(sk), 0) FROM ${table}) + row_number() OVER () AS sk, now()::TIMESTAMP AS fetched_at
   FROM ${read(files, typeOf(root))}`;
}

// The files are read again: exploding from one table of documents uses one thread, while the other one waits busily in half of all runs. And
// only lists stand beside what is unnested: each row would carry the whole document along, which costs two to four times as much.
function loadSamples({ table, root }: Mapping, series: Mapping['series'][number], files: string): string {
  const sample = ['d', ...series.path.map(quoteName)].join('.');
  const isWanted = ({ path }: Field) => ['id', 'day'].includes(path.join()) || path.every((key, i) => key === series.path[i]);
  return `INSERT INTO ${series.table} BY NAME
   SELECT sk, user_id, day, make_timestamp(start + (i - 1) * step) AS ts, utc_offset, value
   FROM (SELECT sk, user_id, day, start, step, utc_offset, unnest(items) AS value, generate_subscripts(items, 1) AS i
         FROM (SELECT sk, user_id, d.day AS day, ${microsOf(`${sample}."timestamp"`)} AS start, (${sample}."interval" * 1000000)::BIGINT AS step,
                 ${offsetOf(`${sample}."timestamp"`)} AS utc_offset, ${sample}.items AS items
               FROM ${read(files, typeOf(root, isWanted))} JOIN (SELECT user_id AS owner, id, sk FROM ${table}) ON owner = user_id AND id = d.id))`;
}

function loadHeartRate(files: string): string {
  return `INSERT INTO ${HEART_RATE} BY NAME
   SELECT user_id, make_timestamp(d.timestamp_unix * 1000) AS ts, ${offsetOf('d."timestamp"')} AS utc_offset, d.bpm AS bpm, d.source AS source,
     now()::TIMESTAMP AS fetched_at
   FROM ${read(files, HEART_RATE_ROW)}`;
}

const leavesOf = (field: Field): LeafField[] => (field.known ? [...field.known.values()].flatMap(leavesOf) : [field]);

/** What read_json is to make of a document; a column that is not named here would have to be guessed from a sample of the rows. */
function typeOf(field: Field, isWanted = (_: Field) => true): string {
  if (!field.known) return TYPES[field.about.kind];
  const inner = [...field.known.values()].filter(isWanted).map(field => `${quoteName(field.key)} ${typeOf(field, isWanted)}`);
  return `STRUCT(${inner.join(', ')})`;
}

/** Each document with the account whose file it is in. */
const read = (files: string, document: string) =>
  `(SELECT parse_filename(filename)[:-14] AS user_id, unnest(data) AS d
    FROM read_json('${files}', columns = {data: '${document}[]'}, format = 'unstructured', filename = true))`;

/** Seconds east of UTC of a text that ends in +hh:mm. */
const offsetOf = (text: string) =>
  `(CASE ${text}[-6] WHEN '-' THEN -1 ELSE 1 END * (${text}[-5:-4]::INTEGER * 3600 + ${text}[-2:]::INTEGER * 60))`;

/** Microseconds since the epoch: a cast to TIMESTAMP drops the offset. */
const microsOf = (text: string) => `(epoch_us(${text}[:-7]::TIMESTAMP) - ${offsetOf(text)}::BIGINT * 1000000)`;

const momentOf = (text: string) => `make_timestamp(${microsOf(text)})`;
