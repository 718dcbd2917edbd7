import { setImmediate } from 'node:timers/promises';
import type { DuckDBAppender, DuckDBDataChunk, DuckDBType } from '@duckdb/node-api';
import bindings from '@duckdb/node-bindings';
import { findDayNumber } from '../../../schema/instant.ts';
import type { Run } from '../documents/parse-document.ts';
import type { HeartRateRows } from '../heart-rate/heart-rate-rows.ts';
import type { Column, ColumnType } from '../mapping.ts';
import type { Value } from '../sql.ts';
import { duckdb } from '../store/duckdb.ts';

/** Rows in one data chunk, DuckDB's vector size. */
const CHUNK = 2048;
/** An append runs on the JavaScript thread: others get their turn this often. */
const CHUNKS_BETWEEN_YIELDS = 16;

const { BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR } = duckdb;
const TYPES: Record<ColumnType, DuckDBType> = {
  VARCHAR,
  JSON: VARCHAR,
  BIGINT,
  DOUBLE,
  BOOLEAN,
  DATE,
  TIMESTAMP,
  INTEGER,
};

const scratch = {
  int64: new Int32Array(CHUNK * 2),
  int32: new Int32Array(CHUNK),
  double: new Float64Array(CHUNK),
  boolean: new Uint8Array(CHUNK),
  valid: new BigUint64Array(CHUNK / 64),
};
const validBytes = new Uint8Array(scratch.valid.buffer);

/** A BigInt for each sample would cost more than all the rest: the two halves are written as numbers. */
function writeInt64(index: number, value: number): void {
  const high = Math.floor(value / 4294967296);
  scratch.int64[index * 2] = value - high * 4294967296;
  scratch.int64[index * 2 + 1] = high;
}

type Vector = ReturnType<typeof bindings.data_chunk_get_vector>;

function setValidity(vector: Vector, rows: number): void {
  bindings.vector_ensure_validity_writable(vector);
  bindings.copy_data_to_vector_validity(vector, 0, scratch.valid.buffer as ArrayBuffer, 0, Math.ceil(rows / 64) * 8);
}

/** Appends rows column by column through data chunks: per-value appends are 13 times slower. */
export class RowAppender {
  readonly #appender: DuckDBAppender;
  readonly #columns: readonly Column[];
  readonly #chunk: DuckDBDataChunk;

  /** @param columns in the order in which they lie in the file */
  constructor(appender: DuckDBAppender, columns: readonly Column[]) {
    this.#appender = appender;
    this.#columns = columns;
    this.#chunk = duckdb.DuckDBDataChunk.create(columns.map(({ type }) => TYPES[type]));
  }

  /** Each row in the order of the columns: instants in microseconds, days as text. */
  async append(rows: readonly (readonly Value[])[]): Promise<void> {
    for (let from = 0, chunks = 1; from < rows.length; from += CHUNK, chunks++) {
      const part = rows.length <= CHUNK ? rows : rows.slice(from, from + CHUNK);
      this.#chunk.reset();
      this.#chunk.rowCount = part.length;
      for (let c = 0; c < this.#columns.length; c++) {
        fillVector(bindings.data_chunk_get_vector(this.#chunk.chunk, c), this.#columns[c]!.type, part, c);
      }
      this.#appender.appendDataChunk(this.#chunk);
      if (chunks % CHUNKS_BETWEEN_YIELDS === 0) await setImmediate();
    }
  }

  clear(): void {
    this.#appender.clear();
  }

  close(): void {
    this.#appender.closeSync();
  }
}

function fillVector(vector: Vector, type: ColumnType, rows: readonly (readonly Value[])[], c: number): void {
  let nulls = 0;
  scratch.valid.fill(0xffffffffffffffffn);
  for (let r = 0; r < rows.length; r++) {
    const value = rows[r]![c];
    if (value === null || value === undefined) {
      nulls++;
      validBytes[r >> 3]! &= ~(1 << (r & 7));
      continue;
    }
    switch (type) {
      case 'VARCHAR':
      case 'JSON':
        bindings.vector_assign_string_element(vector, r, value as string);
        break;
      case 'BIGINT':
      case 'TIMESTAMP':
        writeInt64(r, value as number);
        break;
      case 'INTEGER':
        scratch.int32[r] = value as number;
        break;
      case 'DATE':
        scratch.int32[r] = findDayNumber(value as string)!;
        break;
      case 'DOUBLE':
        scratch.double[r] = value as number;
        break;
      case 'BOOLEAN':
        scratch.boolean[r] = value ? 1 : 0;
        break;
    }
  }
  const source = sourceOf(type);
  if (source) bindings.copy_data_to_vector(vector, 0, source.array.buffer as ArrayBuffer, 0, rows.length * source.width);
  if (nulls) setValidity(vector, rows.length);
}

function sourceOf(type: ColumnType): { array: ArrayBufferView; width: number } | undefined {
  switch (type) {
    case 'BIGINT':
    case 'TIMESTAMP':
      return { array: scratch.int64, width: 8 };
    case 'INTEGER':
    case 'DATE':
      return { array: scratch.int32, width: 4 };
    case 'DOUBLE':
      return { array: scratch.double, width: 8 };
    case 'BOOLEAN':
      return { array: scratch.boolean, width: 1 };
    default:
      return undefined;
  }
}

export interface RunOfDocument {
  sk: number;
  userId: string;
  day: string | null;
  run: Run;
}

type SeriesColumn = 'sk' | 'user_id' | 'day' | 'ts' | 'utc_offset' | 'value';

/** Appends whole runs of samples: what is the same for a run becomes a constant vector. */
export class RunAppender {
  readonly #appender: DuckDBAppender;
  readonly #chunk: DuckDBDataChunk;
  readonly #at: Record<SeriesColumn, number>;
  #chunks = 0;

  /** @param columns in the order in which they lie in the file */
  constructor(appender: DuckDBAppender, columns: readonly Column[]) {
    this.#appender = appender;
    this.#chunk = duckdb.DuckDBDataChunk.create(columns.map(({ type }) => TYPES[type]));
    const at = (name: string) => columns.findIndex(column => column.name === name);
    this.#at = { sk: at('sk'), user_id: at('user_id'), day: at('day'), ts: at('ts'), utc_offset: at('utc_offset'), value: at('value') };
  }

  async append({ sk, userId, day, run }: RunOfDocument): Promise<void> {
    const skValue = bindings.create_int64(BigInt(sk));
    const userValue = bindings.create_varchar(userId);
    const dayNumber = day === null ? undefined : findDayNumber(day);
    const dayValue = dayNumber === undefined ? bindings.create_null_value() : bindings.create_date({ days: dayNumber });
    const offsetValue = bindings.create_int32(run.offset);
    const step = run.interval * 1_000_000;
    for (let from = 0; from < run.items.length; from += CHUNK) {
      const rows = Math.min(CHUNK, run.items.length - from);
      const chunk = this.#chunk;
      chunk.reset();
      chunk.rowCount = rows;
      const vector = (name: SeriesColumn) => bindings.data_chunk_get_vector(chunk.chunk, this.#at[name]);
      bindings.vector_reference_value(vector('sk'), skValue);
      bindings.vector_reference_value(vector('user_id'), userValue);
      bindings.vector_reference_value(vector('day'), dayValue);
      for (let i = 0; i < rows; i++) writeInt64(i, run.start + Math.round((from + i) * step));
      bindings.copy_data_to_vector(vector('ts'), 0, scratch.int64.buffer, 0, rows * 8);
      bindings.vector_reference_value(vector('utc_offset'), offsetValue);
      const { buffer, byteOffset } = run.items;
      bindings.copy_data_to_vector(vector('value'), 0, buffer as ArrayBuffer, byteOffset + from * 8, rows * 8);
      if (markNulls(run.items, from, rows)) setValidity(vector('value'), rows);
      this.#appender.appendDataChunk(chunk);
      if (++this.#chunks % CHUNKS_BETWEEN_YIELDS === 0) await setImmediate();
    }
  }

  clear(): void {
    this.#appender.clear();
  }

  close(): void {
    this.#appender.closeSync();
  }
}

export interface MomentsOfUser {
  userId: string;
  fetchedAt: number;
  rows: HeartRateRows;
}

type MomentColumn = 'user_id' | 'ts' | 'utc_offset' | 'bpm' | 'source' | 'fetched_at';

/** Appends rows of heart rate: what is the same for all of them becomes a constant vector. */
export class MomentAppender {
  readonly #appender: DuckDBAppender;
  readonly #chunk: DuckDBDataChunk;
  readonly #at: Record<MomentColumn, number>;

  /** @param columns in the order in which they lie in the file */
  constructor(appender: DuckDBAppender, columns: readonly Column[]) {
    this.#appender = appender;
    this.#chunk = duckdb.DuckDBDataChunk.create(columns.map(({ type }) => TYPES[type]));
    const at = (name: MomentColumn) => columns.findIndex(column => column.name === name);
    this.#at = {
      user_id: at('user_id'),
      ts: at('ts'),
      utc_offset: at('utc_offset'),
      bpm: at('bpm'),
      source: at('source'),
      fetched_at: at('fetched_at'),
    };
  }

  async append({ userId, fetchedAt, rows }: MomentsOfUser): Promise<void> {
    const userValue = bindings.create_varchar(userId);
    const fetchedValue = bindings.create_timestamp({ micros: BigInt(fetchedAt) });
    const { names } = rows;
    const { micros, offsets, bpm, sources } = rows.columns;
    const chunk = this.#chunk;
    const vector = (name: MomentColumn) => bindings.data_chunk_get_vector(chunk.chunk, this.#at[name]);
    for (let from = 0, chunks = 1; from < rows.length; from += CHUNK, chunks++) {
      const count = Math.min(CHUNK, rows.length - from);
      chunk.reset();
      chunk.rowCount = count;
      bindings.vector_reference_value(vector('user_id'), userValue);
      bindings.vector_reference_value(vector('fetched_at'), fetchedValue);
      for (let i = 0; i < count; i++) writeInt64(i, micros[from + i]!);
      bindings.copy_data_to_vector(vector('ts'), 0, scratch.int64.buffer, 0, count * 8);
      for (let i = 0; i < count; i++) writeInt64(i, bpm[from + i]!);
      bindings.copy_data_to_vector(vector('bpm'), 0, scratch.int64.buffer, 0, count * 8);
      const { buffer, byteOffset } = offsets;
      bindings.copy_data_to_vector(vector('utc_offset'), 0, buffer as ArrayBuffer, byteOffset + from * 4, count * 4);
      const source = vector('source');
      for (let i = 0; i < count; i++) bindings.vector_assign_string_element(source, i, names[sources[from + i]!]!);
      this.#appender.appendDataChunk(chunk);
      if (chunks % CHUNKS_BETWEEN_YIELDS === 0) await setImmediate();
    }
  }

  clear(): void {
    this.#appender.clear();
  }

  close(): void {
    this.#appender.closeSync();
  }
}

/** Clears the validity bit of each NaN; true when there was one. */
function markNulls(items: Float64Array, from: number, rows: number): boolean {
  let nulls = false;
  for (let i = 0; i < rows; i++) {
    if (!Number.isNaN(items[from + i])) continue;
    if (!nulls) scratch.valid.fill(0xffffffffffffffffn);
    nulls = true;
    validBytes[i >> 3]! &= ~(1 << (i & 7));
  }
  return nulls;
}

/**
 * Closing flushes, and so does the garbage collector with an appender that was not closed: after a failure what was appended must be
 * dropped, or it would enter a later transaction.
 */
export async function appending(appender: { clear(): void; close(): void }, work: () => Promise<void>): Promise<void> {
  try {
    await work();
    appender.close();
  } catch (error) {
    appender.clear();
    appender.close();
    throw error;
  }
}
