import { findFieldAbout } from '../../schema/fields.ts';
import { dayOfMicros } from '../../schema/instant.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { Drift, RejectedDocument } from './documents/parse-document.ts';
import { driftAt, findExactInstant, keepText, numberOf, observe } from './documents/parse-document.ts';
import type { HeartRateRow } from './heart-rate/heart-rate-rows.ts';
import { HeartRateColumns, HeartRateRows } from './heart-rate/heart-rate-rows.ts';
import { readUsualPage, type UsualPage } from './heart-rate/usual-page.ts';
import { storable } from './sql.ts';

/** No moment and no source is as long as this: what is would not fit beside others. */
const LONGEST_TEXT = 1024;

const isKnown = (key: string) => key === 'timestamp' || key === 'timestamp_unix' || key === 'bpm' || key === 'source';

/**
 * Reads the heart-rate rows of an answer tolerantly (2.14), page by page: as they came they take more memory. Identity is timestamp and
 * source, the last of one answer wins. A row without a usable timestamp, bpm or source is rejected.
 */
export class HeartRateAnswer {
  #length = 0;
  #held: (() => readonly unknown[])[] = [];
  readonly #documented: readonly string[] = findFieldAbout(heartRate.row.shape.source)?.values ?? [];
  readonly #rejected = new Map<string, RejectedDocument>();
  readonly #columns = new HeartRateColumns();
  #rows: HeartRateRows | undefined;
  #isAscending = true;

  /** Takes a page that is parsed when its rows are asked for, and not before. */
  hold(parse: () => readonly unknown[]): void {
    this.#held.push(parse);
  }

  /** Whether no row was looked at. */
  get isHeld(): boolean {
    return this.#length === 0 && this.#held.length > 0;
  }

  #readHeld(): void {
    for (const parse of this.#held.splice(0)) this.#add(parse());
  }

  add(raws: readonly unknown[]): void {
    this.#readHeld();
    this.#add(raws);
  }

  /** Takes a page that `readUsualPage` has read. */
  addColumns({ micros, offsets, bpm, sources, names }: HeartRateColumns): void {
    this.#readHeld();
    this.#length += micros.length;
    for (let i = 0; i < micros.length; i++) this.#push(micros[i]!, offsets[i]!, bpm[i]!, names[sources[i]!]!, undefined);
    this.#rows = undefined;
  }

  /** Reads a page from its bytes, where it is one in its usual form; nothing of it is taken yet. */
  readPage(bytes: Uint8Array): UsualPage | undefined {
    return readUsualPage(bytes, this.#documented);
  }

  #add(raws: readonly unknown[]): void {
    this.#length += raws.length;
    for (const raw of raws) {
      const row = (typeof raw === 'object' && raw !== null ? raw : {}) as Record<string, unknown>;
      const instant = typeof row.timestamp === 'string' ? findExactInstant(row.timestamp) : undefined;
      const bpm = numberOf(row.bpm) as number;
      const problem = !instant
        ? 'timestamp is missing or no date-time with offset'
        : !Number.isSafeInteger(bpm)
          ? 'bpm is missing or no whole number'
          : typeof row.source !== 'string' || !this.#isSource(row.source)
            ? 'source is missing or no text'
            : undefined;
      if (problem || !instant) {
        const { key, text, reason } = keepText(raw, problem!);
        const timestamp =
          typeof row.timestamp === 'string' && storable(row.timestamp) && row.timestamp.length <= LONGEST_TEXT ? row.timestamp : '';
        // Of one moment there may be several.
        const id = timestamp && (this.#rejected.get(timestamp)?.text ?? text) === text ? timestamp : key;
        this.#rejected.set(id, { id, reason, text, day: instant ? dayOfMicros(instant.micros) : null });
        continue;
      }
      const { source } = row as { source: string };
      let drift: Drift[] | undefined;
      const see = (path: string, kind: Drift['kind']) => {
        drift ??= [];
        observe(drift, driftAt([path], kind));
      };
      if (!this.#documented.includes(source)) see('source', 'unknown value');
      if (row.timestamp_unix === undefined || row.timestamp_unix === null) see('timestamp_unix', 'missing');
      else if (numberOf(row.timestamp_unix) !== Math.floor(instant.micros / 1000)) see('timestamp_unix', 'disagreement');
      for (const key in row) if (!isKnown(key)) see(key, 'unknown field');
      this.#push(instant.micros, instant.offset, bpm, source, drift);
    }
    this.#rows = undefined;
  }

  #isSource(text: string): boolean {
    return this.#columns.hasSource(text) || (text.length <= LONGEST_TEXT && storable(text));
  }

  #push(micros: number, offset: number, bpm: number, source: string, drift: readonly Drift[] | undefined): void {
    const columns = this.#columns;
    const place = columns.placeOf(source);
    const last = columns.length - 1;
    if (this.#isAscending && last >= 0) {
      const before = columns.micros[last]!;
      this.#isAscending = before < micros || (before === micros && this.#nameAt(last) < source);
    }
    columns.push(micros, offset, bpm, place, drift);
  }

  #nameAt(index: number): string {
    return this.#columns.names[this.#columns.sources[index]!]!;
  }

  /** How many rows came. */
  get length(): number {
    this.#readHeld();
    return this.#length;
  }

  /** In the order of their moments and sources. */
  get rows(): HeartRateRows {
    this.#readHeld();
    if (!this.#rows) {
      const rows = HeartRateRows.ofColumns(this.#columns);
      this.#rows = this.#isAscending ? rows : HeartRateRows.of(lastOfEach(rows));
    }
    return this.#rows;
  }

  get rejected(): RejectedDocument[] {
    this.#readHeld();
    return [...this.#rejected.values()];
  }
}

function lastOfEach(rows: HeartRateRows): HeartRateRow[] {
  return [...new Map([...rows].map(row => [identity(row), row])).values()].sort(compareRows);
}

export function compareRows(a: HeartRateRow, b: HeartRateRow): number {
  return a.micros - b.micros || (a.source < b.source ? -1 : a.source > b.source ? 1 : 0);
}

export const identity = ({ micros, source }: HeartRateRow) => `${micros} ${source}`;

export interface Comparison {
  found: Found;
  version: number;
  /** Where the answer is the same as one that was stored before, and all of it is still there: its rows need not be read. */
  same?: { rows: number; rowsByDay: readonly number[] };
}

/** Of what is stored of a range: no row, just those of an answer and none of them by a newer request, or others. */
export type Found = 'none' | 'these' | 'others';

/** How many rows an answer would take away, and how many are stored. */
export interface Missing {
  missing: number;
  stored: number;
}

/** All rows that the service has of one account from `from` (included) to `to` (excluded), in microseconds. */
export interface HeartRateRange {
  userId: string;
  from: number;
  to: number;
  requestedAt: number;
  rows: HeartRateRows;
  /** The answer is not trusted: it brings rows that lie well before or after all that is stored of the range (`APART`), and touches nothing else. */
  isSuspicious?: boolean | undefined;
  /** What the answer was found to be beside what is stored, with the version of what was looked at. */
  compared?: Comparison | undefined;
}
