import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { findDayNumber, findInstant, type Instant } from '../../../schema/instant.ts';
import { findDayOf, findIdOf, type Resource } from '../../../schema/resource.ts';
import { ExactNumber, writeJson } from '../../base/json.ts';
import type { Column, Field, LeafField, List, Mapping, ObjectField } from '../mapping.ts';
import { MAPPING_VERSION } from '../mapping.ts';
import type { Value } from '../sql.ts';
import { storable } from '../sql.ts';

/** A run of samples ready to be appended. A null item is NaN, which JSON cannot hold. */
export interface Run {
  start: number;
  offset: number;
  interval: number;
  items: Float64Array;
}

/** Something that a document had and its declaration does not foresee. Never holds a value. */
export interface Drift {
  path: string;
  /** Where it was seen, as JSON path: `$.met.items[17]`. */
  example: string;
  kind: 'unknown field' | 'unknown value' | 'missing' | 'wrong type' | 'bad format' | 'out of range' | 'disagreement';
}

export interface ParsedDocument {
  id: string;
  day: string | null;
  /** In the order of `Mapping.columns`. Instants are microseconds, days are text. */
  values: Value[];
  /** In the order of `Mapping.series`. */
  runs: (Run | null)[];
  /** In the order of `Mapping.lists`: of each object its values in the order of `List.columns`. */
  lists: (Value[][] | null)[];
  /** JSON text, or null. */
  extra: string | null;
  hash: string;
  drift: Drift[];
  samples: number;
}

export interface RejectedDocument {
  /** Where the document has no usable one, `keyOfText`. */
  id: string;
  reason: string;
  /** The whole document as JSON text. */
  text: string;
  /** The calendar day that it says it belongs to. */
  day: string | null;
}

export type Parsed = { document: ParsedDocument; rejected?: undefined } | { rejected: RejectedDocument; document?: undefined };

class Unusable extends Error {}

interface Reading {
  values: Value[];
  runs: (Run | null)[];
  /** Where what has a table of its own is to lie. */
  mapped: readonly List[];
  lists: (Value[][] | null)[];
  drift: Drift[];
  samples: number;
}

/** Nothing of a document, or of an object of an array, read yet. */
const beginReading = (columns: readonly Column[], mapped: readonly List[]): Reading => ({
  values: new Array(columns.length).fill(null),
  runs: [],
  mapped,
  lists: mapped.map(() => null),
  drift: [],
  samples: 0,
});

type Extra = Record<string, unknown>;

/** What DuckDB can take as one text within the memory that storing has. */
const MOST_TEXT_BYTES = 16 * 1024 * 1024;
/** What statements can name. */
const LONGEST_ID = 1024;

/**
 * Reads a wire document tolerantly: a document is refused only when its `id` or `day`, or what gives them, is unusable, or when it is larger
 * or nested more deeply than can be kept. Whatever else does not fit becomes null in its column, stays as it came in `extra`, and is counted as drift.
 */
export function parseDocument(mapping: Mapping, raw: unknown): Parsed {
  const reading = beginReading(mapping.columns, mapping.lists);
  for (let i = 0; i < mapping.series.length; i++) reading.runs.push(null);
  const { resource, idAt, dayAt } = mapping;
  const [saidId, saidDay] = [findIdOf(resource, raw), findDayOf(resource, raw)];
  const id = saidId !== undefined && storable(saidId) && saidId.length <= LONGEST_ID ? saidId : '';
  const day = saidDay !== undefined && findDayNumber(saidDay) !== undefined ? saidDay : null;
  try {
    if (!isObject(raw)) throw new Unusable('not an object');
    if (!id) throw new Unusable(whyWithoutId(resource, saidId));
    const extra = readObject(mapping.root, raw, reading);
    if (resource.dated && day === null) throw new Unusable(`${resource.dayField} is missing or not a calendar day`);
    reading.values[idAt] = id;
    if (dayAt >= 0) reading.values[dayAt] = day;
    const extraText = extra ? jsonText(sorted(extra)) : null;
    if (extraText !== null && Buffer.byteLength(extraText) > MOST_TEXT_BYTES) throw new Unusable('too much of it has no column');
    const hash = contentHash(mapping, reading, extraText);
    const { mapped: _, ...read } = reading;
    return { document: { id, day: resource.dated ? day : null, extra: extraText, hash, ...read } };
  } catch (error) {
    // The stack is what a document nested thousands of levels deep exhausts.
    if (!(error instanceof Unusable || error instanceof RangeError)) throw error;
    const { key, text, reason } = keepText(raw, error instanceof Unusable ? error.message : TOO_DEEP);
    return { rejected: { id: id || key, reason, text, day } };
  }
}

function whyWithoutId({ identifiedBy }: Resource, said: string | undefined): string {
  if (identifiedBy !== undefined) return `${identifiedBy} is missing or no moment`;
  return said !== undefined && said.length > LONGEST_ID ? `id is longer than ${LONGEST_ID} characters` : 'id is missing or no text';
}

const TOO_DEEP = 'nested too deeply to be kept';

/** A refused document as text, with what tells it from others without an id; of one that cannot be kept the text is `null`. */
export function keepText(raw: unknown, reason: string): { key: string; text: string; reason: string } {
  let text: string;
  try {
    text = jsonText(raw);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { key: keyOfText('null'), text: 'null', reason: TOO_DEEP };
  }
  const key = keyOfText(text);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MOST_TEXT_BYTES) return { key, text, reason };
  return { key, text: 'null', reason: `${reason}; its ${bytes} bytes are too many to be kept` };
}

/**
 * JSON text as DuckDB takes it. One lone surrogate in one row would make every JSON function fail over the whole table, so it
 * becomes U+FFFD.
 */
function jsonText(value: unknown): string {
  return writeJson(value).replace(/\\(\\|ud[89a-f][0-9a-f]{2})/g, (written, what) => (what === '\\' ? written : '\\ufffd'));
}

/** What tells rejected documents without an id apart: the same text is the same one, whenever it comes. */
const keyOfText = (text: string) => `sha256:${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** In one document; what it has besides is counted together. */
const MOST_DRIFT = 100;
/** The path under which drift is counted that is too various to be told apart. */
export const OTHER_PATHS = '*';

/** Adds what was observed to what a document is counted with. */
export function observe(drift: Drift[], seen: Drift): void {
  if (drift.length < MOST_DRIFT) drift.push(seen);
  else if (drift.length === MOST_DRIFT) drift.push({ path: OTHER_PATHS, example: '$', kind: seen.kind });
}

function readObject(object: ObjectField, raw: Record<string, unknown>, reading: Reading): Extra | undefined {
  let extra: Extra | undefined;
  let found = 0;
  for (const field of object.known.values()) {
    const value = raw[field.key];
    if (value !== undefined) found++;
    const left = readField(field, value, reading);
    if (left !== undefined) {
      extra ??= {};
      extra[field.key] = left;
    }
  }
  const keys = Object.keys(raw);
  if (keys.length !== found) {
    for (const key of keys) {
      // A null says no more than an absent key.
      if (object.known.has(key) || raw[key] === null) continue;
      extra ??= {};
      setOwn(extra, key, raw[key]);
      observe(reading.drift, driftAt([...object.path, key], 'unknown field'));
    }
  }
  return extra;
}

/** Assignment would take the key `__proto__` for something else. */
function setOwn(target: Extra, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Fills the columns of one field; returns what must stay in `extra`, if anything. */
function readField(field: Field, value: unknown, reading: Reading): unknown {
  if (value === null || value === undefined) {
    // Promised is within the object around it, and that one is here.
    if (field.promised && !(value === null && !field.known && field.about.mayBeNull)) note(field, 'missing', reading);
    return undefined;
  }
  if (field.known) {
    if (isObject(value)) return readObject(field, value, reading);
    return misfit(field, 'wrong type', value, reading);
  }
  const at = field.column;
  switch (field.about.kind) {
    case 'sample':
      return readSample(field, value, reading);
    case 'objects':
      return readObjects(field, value, reading);
    case 'texts':
      return readTexts(field, value, reading);
    case 'instant': {
      if (typeof value !== 'string') return misfit(field, 'wrong type', value, reading);
      const instant = findExactInstant(value);
      if (!instant) return misfit(field, 'bad format', value, reading);
      reading.values[at] = instant.micros;
      reading.values[at + 1] = instant.offset;
      return undefined;
    }
    case 'text':
      if (typeof value !== 'string') return misfit(field, 'wrong type', value, reading);
      if (!storable(value)) return misfit(field, 'bad format', value, reading);
      if (value.length > MOST_TEXT_BYTES / 4) return misfit(field, 'out of range', value, reading);
      if (field.about.values && !field.about.values.includes(value)) note(field, 'unknown value', reading);
      break;
    case 'day':
      if (typeof value !== 'string') return misfit(field, 'wrong type', value, reading);
      if (!field.schema.safeParse(value).success) return misfit(field, 'bad format', value, reading);
      break;
    case 'integer': {
      const number = numberOf(value);
      if (typeof number !== 'number' || !Number.isSafeInteger(number)) return misfit(field, 'wrong type', value, reading);
      if (!field.schema.safeParse(number).success) note(field, 'out of range', reading);
      reading.values[at] = number;
      return undefined;
    }
    case 'number': {
      const number = numberOf(value);
      if (typeof number !== 'number' || !Number.isFinite(number)) return misfit(field, 'wrong type', value, reading);
      if (!field.schema.safeParse(number).success) note(field, 'out of range', reading);
      reading.values[at] = number;
      return undefined;
    }
    case 'flag':
      if (typeof value !== 'boolean') return misfit(field, 'wrong type', value, reading);
      break;
  }
  reading.values[at] = value;
  return undefined;
}

/** A column of numbers holds what JavaScript makes of one, however many digits it was written with. */
export const numberOf = (value: unknown) => (value instanceof ExactNumber ? Number(value.text) : value);

function note(field: Field, kind: Drift['kind'], reading: Reading, example?: string): void {
  observe(reading.drift, { ...driftAt(field.path, kind), ...(example === undefined ? undefined : { example }) });
}

/** What does not fit stays in `extra`. */
function misfit(field: Field, kind: Drift['kind'], value: unknown, reading: Reading): unknown {
  note(field, kind, reading);
  return value;
}

function readSample(field: LeafField, value: unknown, reading: Reading): unknown {
  if (!isObject(value)) return misfit(field, 'wrong type', value, reading);
  const { items, timestamp } = value;
  const interval = numberOf(value.interval);
  if (isAbsent(interval) || isAbsent(items) || isAbsent(timestamp)) return misfit(field, 'missing', value, reading);
  const { numbers, strange } = Array.isArray(items) ? numbersOf(items) : {};
  if (!numbers || typeof interval !== 'number' || !Number.isFinite(interval) || typeof timestamp !== 'string')
    return misfit(field, 'wrong type', value, reading);
  const instant = findExactInstant(timestamp);
  if (!instant) return misfit(field, 'bad format', value, reading);
  // The samples must have moments of their own, in their order, that DuckDB can hold.
  const step = interval * 1_000_000;
  if (step < 1 || !Number.isSafeInteger(Math.ceil(instant.micros + step * numbers.length))) {
    return misfit(field, 'out of range', value, reading);
  }
  const at = field.column;
  reading.values[at] = instant.micros;
  reading.values[at + 1] = instant.offset;
  reading.values[at + 2] = interval;
  reading.values[at + 3] = numbers.length;
  reading.runs[field.series] = { start: instant.micros, offset: instant.offset, interval, items: numbers };
  reading.samples += numbers.length;
  if (strange !== undefined) {
    // A null beside its neighbours, and what it was stands in the sample as it came.
    note(field, 'wrong type', reading, jsonPath([...field.path, 'items', strange]));
    return value;
  }

  const keys = Object.keys(value);
  if (keys.length === 3) return undefined;
  const extra: Extra = {};
  for (const key of keys) {
    if (key === 'interval' || key === 'items' || key === 'timestamp' || value[key] === null) continue;
    setOwn(extra, key, value[key]);
    observe(reading.drift, driftAt([...field.path, key], 'unknown field'));
  }
  return Object.keys(extra).length ? extra : undefined;
}

/** Each object has a row; where one of them has more than its columns take, the array stays whole in `extra` too. */
function readObjects(field: LeafField, value: unknown, reading: Reading): unknown {
  const list = reading.mapped[field.list];
  if (!list || !Array.isArray(value)) return misfit(field, 'wrong type', value, reading);
  let isStrange = false;
  reading.values[field.column] = value.length;
  reading.lists[field.list] = value.map((item, i) => {
    const row = beginReading(list.columns, []);
    const isLeft = !isObject(item) || readObject(list.root, item, row) !== undefined;
    if (isLeft) isStrange = true;
    const place = jsonPath([...field.path, i]);
    if (!isObject(item)) note(field, 'wrong type', reading, place);
    for (const { path, example, kind } of row.drift) {
      observe(reading.drift, { path: cutPath(`${field.path.join('.')}.${path}`), example: place + example.slice(1), kind });
    }
    return row.values;
  });
  return isStrange ? value : undefined;
}

function readTexts(field: LeafField, value: unknown, reading: Reading): unknown {
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) return misfit(field, 'wrong type', value, reading);
  if (!value.every(storable)) return misfit(field, 'bad format', value, reading);
  const text = JSON.stringify(value);
  if (text.length > MOST_TEXT_BYTES / 4) return misfit(field, 'out of range', value, reading);
  reading.values[field.column] = text;
  return undefined;
}

const isAbsent = (value: unknown) => value === null || value === undefined;

/** Beyond the year 2255 a number of microseconds is not exact any more. */
export function findExactInstant(text: string): Instant | undefined {
  const instant = findInstant(text);
  return instant && Number.isSafeInteger(instant.micros) ? instant : undefined;
}

/** Text that every database and tool can hold: keys are the service's. */
const holdable = (text: string) => text.toWellFormed().replaceAll('\u0000', '\ufffd');

/** A longer one is cut: a key may be as long as its sender likes. */
const LONGEST_PATH = 200;

export function driftAt(path: readonly string[], kind: Drift['kind']): Drift {
  const text = holdable(path.join('.'));
  return { path: cutPath(text), example: text.length <= LONGEST_PATH ? holdable(jsonPath(path)) : '$', kind };
}

const cutPath = (text: string) => (text.length <= LONGEST_PATH ? text : `${text.slice(0, LONGEST_PATH).toWellFormed()}…`);

/** As DuckDB's JSON functions take it; what cannot be written so, a key with a quotation mark, they do not find. */
const jsonPath = (path: readonly (string | number)[]) =>
  `$${path.map(part => (typeof part === 'number' ? `[${part}]` : /^[A-Za-z_]\w*$/.test(part) ? `.${part}` : `."${part}"`)).join('')}`;

/** The numbers, with a null where an item is none, and the place of the first such item. */
function numbersOf(items: unknown[]): { numbers: Float64Array; strange?: number } {
  const numbers = new Float64Array(items.length);
  let strange: number | undefined;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (typeof item === 'number' && Number.isFinite(item)) numbers[i] = item;
    else if (item instanceof ExactNumber && Number.isFinite(Number(item.text))) numbers[i] = Number(item.text);
    else {
      numbers[i] = Number.NaN;
      if (item !== null) strange ??= i;
    }
  }
  return strange === undefined ? { numbers } : { numbers, strange };
}

/**
 * Covers what arrived and the mapping version; the order of keys and null against absent make no difference, nor does a field that
 * our declaration learned and the document does not have.
 */
function contentHash(mapping: Mapping, reading: Reading, extra: string | null): string {
  const hash = createHash('sha256');
  hash.update(`${MAPPING_VERSION}\n${JSON.stringify(filledOf(mapping.columns, reading.values))}\n${extra ?? ''}\n`);
  for (const run of reading.runs) {
    if (run) hash.update(new Uint8Array(run.items.buffer, run.items.byteOffset, run.items.byteLength));
  }
  for (const [l, { columns }] of mapping.lists.entries()) {
    const rows = reading.lists[l];
    if (rows) hash.update(JSON.stringify(rows.map(values => filledOf(columns, values))));
  }
  return hash.digest('base64url').slice(0, 22);
}

/** The columns that hold something, each with its value. */
function filledOf(columns: readonly Column[], values: readonly Value[]): Value[] {
  const filled: Value[] = [];
  for (const [i, { name }] of columns.entries()) {
    const value = values[i] ?? null;
    if (value !== null) filled.push(name, value);
  }
  return filled;
}

/** The same content in one order of keys. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const copy: Extra = {};
  for (const key of Object.keys(value).sort()) setOwn(copy, key, sorted(value[key]));
  return copy;
}

/** Documents parsed between two turns of the event loop. */
const DOCUMENTS_BETWEEN_TURNS = 64;

export interface ParsedDocuments {
  documents: ParsedDocument[];
  rejected: RejectedDocument[];
  samples: number;
}

/** Parses the documents of one answer; others have their turn meanwhile. */
export async function parseDocuments(mapping: Mapping, raws: readonly unknown[]): Promise<ParsedDocuments> {
  const documents: ParsedDocument[] = [];
  const rejected: RejectedDocument[] = [];
  let samples = 0;
  for (let i = 0; i < raws.length; i++) {
    const parsed = parseDocument(mapping, raws[i]);
    if (parsed.document) {
      documents.push(parsed.document);
      samples += parsed.document.samples;
    } else rejected.push(parsed.rejected);
    if (i % DOCUMENTS_BETWEEN_TURNS === DOCUMENTS_BETWEEN_TURNS - 1) await setImmediate();
  }
  return { documents, rejected, samples };
}
