import type { Drift } from '../documents/parse-document.ts';

export interface HeartRateRow {
  micros: number;
  offset: number;
  bpm: number;
  source: string;
  drift?: readonly Drift[] | undefined;
}

interface Columns {
  micros: Float64Array;
  offsets: Int32Array;
  bpm: Float64Array;
  /** Of each row its place in `names`. */
  sources: Uint32Array;
}

/**
 * Rows of heart rate by columns, in the order of their moments and sources: as objects they take several times the memory, and more time to
 * be made and collected than all else that is done with them.
 */
export class HeartRateRows implements Iterable<HeartRateRow> {
  readonly columns: Columns;
  /** Of the sources, of these rows and perhaps others. */
  readonly names: readonly string[];
  readonly #drift: ReadonlyMap<number, readonly Drift[]>;
  /** The place of the first row in what `#drift` numbers. */
  readonly #first: number;

  private constructor(columns: Columns, names: readonly string[], drift: ReadonlyMap<number, readonly Drift[]>, first: number) {
    this.columns = columns;
    this.names = names;
    this.#drift = drift;
    this.#first = first;
  }

  /** @param rows in the order of their moments and sources */
  static of(rows: readonly HeartRateRow[]): HeartRateRows {
    const collected = new HeartRateColumns();
    for (const { micros, offset, bpm, source, drift } of rows) collected.push(micros, offset, bpm, collected.placeOf(source), drift);
    return HeartRateRows.ofColumns(collected);
  }

  static ofColumns({ micros, offsets, bpm, sources, names, drift }: HeartRateColumns): HeartRateRows {
    const columns = {
      micros: new Float64Array(micros),
      offsets: new Int32Array(offsets),
      bpm: new Float64Array(bpm),
      sources: new Uint32Array(sources),
    };
    return new HeartRateRows(columns, names, drift, 0);
  }

  get length(): number {
    return this.columns.micros.length;
  }

  at(index: number): HeartRateRow {
    const { micros, offsets, bpm } = this.columns;
    return {
      micros: micros[index]!,
      offset: offsets[index]!,
      bpm: bpm[index]!,
      source: this.sourceAt(index),
      drift: this.#drift.get(this.#first + index),
    };
  }

  sourceAt(index: number): string {
    return this.names[this.columns.sources[index]!]!;
  }

  *[Symbol.iterator](): Generator<HeartRateRow> {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }

  /** The rows from a moment (included) to another (excluded), in microseconds. */
  within(from: number, to: number): HeartRateRows {
    const [first, end] = [this.#findFirst(from), this.#findFirst(to)];
    if (first === 0 && end === this.length) return this;
    const { micros, offsets, bpm, sources } = this.columns;
    const columns = {
      micros: micros.subarray(first, end),
      offsets: offsets.subarray(first, end),
      bpm: bpm.subarray(first, end),
      sources: sources.subarray(first, end),
    };
    return new HeartRateRows(columns, this.names, this.#drift, this.#first + first);
  }

  /** The first row at or after a moment. */
  #findFirst(moment: number): number {
    const { micros } = this.columns;
    let [low, high] = [0, micros.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (micros[middle]! < moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** What all rows together have that was not foreseen. */
  *drift(): Generator<Drift> {
    for (const [index, seen] of this.#drift) {
      if (index >= this.#first && index < this.#first + this.length) yield* seen;
    }
  }
}

/** Rows as they come, by columns. */
export class HeartRateColumns {
  readonly micros: number[] = [];
  readonly offsets: number[] = [];
  readonly bpm: number[] = [];
  readonly sources: number[] = [];
  readonly names: string[] = [];
  readonly drift = new Map<number, readonly Drift[]>();
  readonly #places = new Map<string, number>();

  get length(): number {
    return this.micros.length;
  }

  hasSource(name: string): boolean {
    return this.#places.has(name);
  }

  placeOf(source: string): number {
    const known = this.#places.get(source);
    if (known !== undefined) return known;
    this.#places.set(source, this.names.length);
    return this.names.push(source) - 1;
  }

  /** @param source as `placeOf` tells it */
  push(micros: number, offset: number, bpm: number, source: number, drift: readonly Drift[] | undefined): void {
    if (drift?.length) this.drift.set(this.micros.length, drift);
    this.micros.push(micros);
    this.offsets.push(offset);
    this.bpm.push(bpm);
    this.sources.push(source);
  }
}
