import type { WriteBatch } from './write-batch.ts';

/** Large groups go straight to the file, in whole row groups: they cost 0.6 of the CPU of groups of 125,000 samples. */
const GROUP_SAMPLES = 750_000;
/** DuckDB's. What a group leaves over begins a row group and a block of its own, and a checkpoint moves it again. */
const ROW_GROUP = 122_880;
/** What a document’s own row costs, counted in samples: pages of documents without any would make a group that takes as long as a large one. */
const DOCUMENT_AS_SAMPLES = 200;
/** No more changes than this in one group, however few samples they have. */
const GROUP_CHANGES = 2_000;

/**
 * How many of the changes that wait go into the next group.
 * @param besideLive the samples of a group while live work comes; undefined while none does
 */
export const batchSize = (waiting: readonly { change: WriteBatch }[], besideLive: number | undefined): number =>
  besideLive === undefined ? lengthAlone(waiting) : sizeBesideLive(waiting, besideLive);

/** Whether so many changes, with so many samples, are two groups at least. */
export const isTwoGroups = (changes: number, samples: number, besideLive: number | undefined): boolean =>
  samples >= 2 * (besideLive ?? GROUP_SAMPLES) || changes >= 2 * GROUP_CHANGES;

/** Of more than half of a group as many as fill their last row group best, else all. */
function lengthAlone(waiting: readonly { change: WriteBatch }[]): number {
  let samples = 0;
  let length = 0;
  let best = { length: 0, unused: Number.POSITIVE_INFINITY };
  while (length < waiting.length && length < GROUP_CHANGES && (length === 0 || samples < GROUP_SAMPLES)) {
    samples += waiting[length++]!.change.samples;
    const unused = (ROW_GROUP - (samples % ROW_GROUP)) % ROW_GROUP;
    if (samples >= GROUP_SAMPLES / 2 && unused <= best.unused) best = { length, unused };
  }
  return best.length || length;
}

/** As many as a live change can wait for, but one in any case. */
function sizeBesideLive(waiting: readonly { change: WriteBatch }[], most: number): number {
  let cost = 0;
  let length = 0;
  while (length < waiting.length && length < GROUP_CHANGES) {
    const { samples, page } = waiting[length]!.change;
    cost += samples + DOCUMENT_AS_SAMPLES * (page?.documents.length ?? 0);
    if (length > 0 && cost > most) break;
    length++;
  }
  return length;
}
