import { endianness } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import type { DuckDBAppender, DuckDBDataChunk, DuckDBType } from '@duckdb/node-api';
import bindings from '@duckdb/node-bindings';
import { findDayNumber } from '../../../schema/instant.ts';
import type { Run } from '../documents/parse-document.ts';
import type { HeartRateRows } from '../heart-rate/heart-rate-rows.ts';
import type { Column, ColumnType } from '../mapping.ts';
import type { Value } from '../sql.ts';
import { duckdb } from '../store/duckdb.ts';
import type { Transaction } from './write-batch.ts';

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
  text: new Int32Array(CHUNK * 4),
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

/** Appends through data chunks, column by column: per-value appends are 13 times slower. */
abstract class ChunkAppender {
  readonly #appender: DuckDBAppender;
  readonly #chunk: DuckDBDataChunk;
  readonly #places: ReadonlyMap<string, number>;
  #chunks = 0;

  /** @param columns in the order in which they lie in the file */
  constructor(appender: DuckDBAppender, columns: readonly Column[]) {
    this.#appender = appender;
    this.#chunk = duckdb.DuckDBDataChunk.create(columns.map(({ type }) => TYPES[type]));
    this.#places = new Map(columns.map(({ name }, place) => [name, place]));
  }

  /** @param fill is given the vectors by the names of their columns */
  protected async appendChunk(rows: number, fill: (vectorOf: (column: string) => Vector) => void): Promise<void> {
    const chunk = this.#chunk;
    chunk.reset();
    chunk.rowCount = rows;
    fill(column => bindings.data_chunk_get_vector(chunk.chunk, this.#places.get(column) ?? -1));
    this.#appender.appendDataChunk(chunk);
    if (++this.#chunks % CHUNKS_BETWEEN_YIELDS === 0) await setImmediate();
  }

  clear(): void {
    this.#appender.clear();
  }

  close(): void {
    this.#appender.closeSync();
  }
}

export class RowAppender extends ChunkAppender {
  readonly #columns: readonly Column[];

  constructor(appender: DuckDBAppender, columns: readonly Column[]) {
    super(appender, columns);
    this.#columns = columns;
  }

  /** Each row in the order of the columns: instants in microseconds, days as text. */
  async append(rows: readonly (readonly Value[])[]): Promise<void> {
    for (let from = 0; from < rows.length; from += CHUNK) {
      const part = rows.length <= CHUNK ? rows : rows.slice(from, from + CHUNK);
      await this.appendChunk(part.length, vectorOf => {
        for (const [c, { name, type }] of this.#columns.entries()) fillVector(vectorOf(name), type, part, c);
      });
    }
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

/** Appends whole runs of samples: what is the same for a run becomes a constant vector. */
export class RunAppender extends ChunkAppender {
  async append({ sk, userId, day, run }: RunOfDocument): Promise<void> {
    const skValue = bindings.create_int64(BigInt(sk));
    const userValue = bindings.create_varchar(userId);
    const dayNumber = day === null ? undefined : findDayNumber(day);
    const dayValue = dayNumber === undefined ? bindings.create_null_value() : bindings.create_date({ days: dayNumber });
    const offsetValue = bindings.create_int32(run.offset);
    const step = run.interval * 1_000_000;
    const { buffer, byteOffset } = run.items;
    for (let from = 0; from < run.items.length; from += CHUNK) {
      const rows = Math.min(CHUNK, run.items.length - from);
      await this.appendChunk(rows, vectorOf => {
        bindings.vector_reference_value(vectorOf('sk'), skValue);
        bindings.vector_reference_value(vectorOf('user_id'), userValue);
        bindings.vector_reference_value(vectorOf('day'), dayValue);
        for (let i = 0; i < rows; i++) writeInt64(i, run.start + Math.round((from + i) * step));
        bindings.copy_data_to_vector(vectorOf('ts'), 0, scratch.int64.buffer, 0, rows * 8);
        bindings.vector_reference_value(vectorOf('utc_offset'), offsetValue);
        bindings.copy_data_to_vector(vectorOf('value'), 0, buffer as ArrayBuffer, byteOffset + from * 8, rows * 8);
        if (markNulls(run.items, from, rows)) setValidity(vectorOf('value'), rows);
      });
    }
  }
}

export interface MomentsOfUser {
  userId: string;
  fetchedAt: number;
  rows: HeartRateRows;
}

/** Appends rows of heart rate: what is the same for all of them becomes a constant vector. */
export class MomentAppender extends ChunkAppender {
  async append({ userId, fetchedAt, rows }: MomentsOfUser): Promise<void> {
    const userValue = bindings.create_varchar(userId);
    const fetchedValue = bindings.create_timestamp({ micros: BigInt(fetchedAt) });
    const { micros, offsets, bpm } = rows.columns;
    for (let from = 0; from < rows.length; from += CHUNK) {
      const count = Math.min(CHUNK, rows.length - from);
      await this.appendChunk(count, vectorOf => {
        bindings.vector_reference_value(vectorOf('user_id'), userValue);
        bindings.vector_reference_value(vectorOf('fetched_at'), fetchedValue);
        for (const [column, values] of [
          ['ts', micros],
          ['bpm', bpm],
        ] as const) {
          for (let i = 0; i < count; i++) writeInt64(i, values[from + i]!);
          bindings.copy_data_to_vector(vectorOf(column), 0, scratch.int64.buffer, 0, count * 8);
        }
        bindings.copy_data_to_vector(vectorOf('utc_offset'), 0, offsets.buffer as ArrayBuffer, offsets.byteOffset + from * 4, count * 4);
        fillSources(vectorOf('source'), rows, from, count);
      });
    }
  }
}

/** DuckDB keeps a text of so many bytes within its 16 bytes of a vector, behind its length (`duckdb_string_t`). */
const INLINE_BYTES = 12;

/** A short text as it lies in a vector, in four numbers; undefined of a longer one, which lies elsewhere. */
function inlined(text: string): Int32Array | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length > INLINE_BYTES || endianness() !== 'LE') return undefined;
  const words = new Int32Array(4);
  words[0] = bytes.length;
  new Uint8Array(words.buffer).set(bytes, 4);
  return words;
}

/** A call for each row would cost more than all else of it: short texts are copied together. */
function fillSources(vector: Vector, { columns: { sources }, names }: HeartRateRows, from: number, count: number): void {
  const texts = names.map(inlined);
  const long: number[] = [];
  for (let i = 0; i < count; i++) {
    const words = texts[sources[from + i]!];
    if (!words) long.push(i);
    for (let word = 0; word < 4; word++) scratch.text[i * 4 + word] = words?.[word] ?? 0;
  }
  bindings.copy_data_to_vector(vector, 0, scratch.text.buffer as ArrayBuffer, 0, count * 16);
  for (const i of long) bindings.vector_assign_string_element(vector, i, names[sources[from + i]!]!);
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
 * Appends to a table `count` rows. Closing flushes, and so does the garbage collector with an appender that was not closed: after a failure what was
 * appended must be dropped, or it would enter a later transaction.
 */
export async function appendTo<Appender extends ChunkAppender>(
  { openAppender, columnsOf }: Pick<Transaction, 'openAppender' | 'columnsOf'>,
  { table, count }: { table: string; count: number },
  Appender: new (appender: DuckDBAppender, columns: readonly Column[]) => Appender,
  work: (appender: Appender) => Promise<void>,
): Promise<void> {
  const columns = columnsOf(table);
  const { appender, finish } = await openAppender(table, columns, count);
  const rows = new Appender(appender, columns);
  try {
    await work(rows);
    rows.close();
  } catch (error) {
    rows.clear();
    rows.close();
    throw error;
  }
  await finish?.();
}
