import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf, TryLaterError } from './errors.ts';
import { ensureFolder, syncFolder, writeFileAtomically } from './files.ts';

export interface JournalOptions {
  /** Notes in the journal itself what is finished: for who has no ledger to know it from. */
  notesFinished?: boolean;
  /** From this size on a file is followed by the next. */
  fileBytes?: number;
  /** Told of lines of a file that cannot be read: what they held may have been promised to somebody. */
  onDamaged?: (path: string, lines: number) => void;
}

/** One file. It is removed as soon as everything in it is finished; one with damaged lines is kept under another name. */
interface Segment {
  path: string;
  open: number;
  damaged: number;
}

interface Entry {
  segment: Segment;
  at: number;
  length: number;
}

interface OpenFile {
  segment: Segment;
  file: FileHandle;
  size: number;
}

/** A line to be written: an entry, or the note that one is finished. */
interface Line {
  key: string;
  text?: string;
  resolve(): void;
  reject(error: unknown): void;
}

const FILE_BYTES = 1_048_576;
const FILE = /^(\d{10})\.journal$/;
/** What is left of a file of which something could not be read. */
const DAMAGED = /^(\d{10})\.journal\.damaged$/;
/** Half of a file that `rewrite` was making. The folder may be a link to one of others. */
const HALF_WRITTEN = /^\d{10}\.journal\.\d+(?:\.[0-9a-f]+)?\.new$/;
const LINE = /^([0-9a-f]{8}) ([+-]) ([\w.-]+)(?: (.*))?$/s;

const bytesOf = ({ key, text }: Pick<Line, 'key' | 'text'>): Buffer => {
  const content = text === undefined ? `- ${key}` : `+ ${key} ${text}`;
  return Buffer.from(`${sumOf(content)} ${content}\n`);
};
const nameOf = (number: number) => `${String(number).padStart(10, '0')}.journal`;
const sumOf = (content: string | Buffer) => crc32(content).toString(16).padStart(8, '0');

/** A line without its end; undefined where it is not what was written. */
function parseLine(bytes: Buffer): { sign: string; key: string; text: string | undefined } | undefined {
  const [, sum, sign, key, text] = LINE.exec(bytes.toString()) ?? [];
  return sign !== undefined && key !== undefined && sumOf(bytes.subarray(9)) === sum ? { sign, key, text } : undefined;
}

/** What has been taken on and not finished yet, wherever it lies. */
export type Inbox = Pick<
  Journal,
  'append' | 'finish' | 'has' | 'find' | 'keys' | 'size' | 'damaged' | 'damagedFiles' | 'ensureWritable' | 'copyTo' | 'close'
> & {
  /** Nothing stays of what is not kept. Nobody may append meanwhile. */
  rewrite(keep: (key: string, text: string) => boolean): void | Promise<void>;
};

/** What has been taken on and not finished yet, durable in a folder of our own. Only one process may have it open. */
export class Journal {
  readonly #folder: string;
  readonly #notesFinished: boolean;
  readonly #fileBytes: number;
  readonly #onDamaged: (path: string, lines: number) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #segments: Segment[] = [];
  #lastNumber = 0;
  #current: OpenFile | undefined;
  /** What is appended next goes into it: it stays though it holds nothing yet, also while the disk makes it. */
  #head: Segment | undefined;
  #reading: { path: string; file: number } | undefined;
  #waiting: Line[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;
  #damaged = 0;

  /** Opens what a folder holds; the folder is made with the first entry. What a crash has torn at the end of a file was promised to nobody. */
  constructor(folder: string, { notesFinished = false, fileBytes = FILE_BYTES, onDamaged = () => {} }: JournalOptions = {}) {
    this.#folder = folder;
    this.#notesFinished = notesFinished;
    this.#fileBytes = fileBytes;
    this.#onDamaged = onDamaged;
    for (const name of listNames(folder)) {
      const number = FILE.exec(name)?.[1];
      if (HALF_WRITTEN.test(name)) rmSync(join(folder, name), { force: true });
      this.#lastNumber = Math.max(this.#lastNumber, Number(number ?? DAMAGED.exec(name)?.[1] ?? 0));
      if (number === undefined) continue;
      const segment: Segment = { path: join(folder, name), open: 0, damaged: 0 };
      this.#segments.push(segment);
      this.#readSegment(segment);
    }
    this.#removeFinished();
  }

  /**
   * Resolves when the text is on the disk; all that wait at one moment share one sync. A known key keeps its text. Keys are of `A–Z a–z 0–9
   * _ . -`, texts hold no line break.
   * @throws TryLaterError when it cannot be written
   */
  async append(key: string, text: string): Promise<void> {
    if (!this.#entries.has(key)) await this.#write(key, text);
  }

  /** Nothing is left to be done for a key, known or not. */
  finish(key: string): void {
    if (!this.#drop(key)) return;
    this.#removeFinished();
    // A note that cannot be written is not missed: what it speaks of is done once more, which does no harm.
    if (this.#notesFinished) this.#write(key).catch(() => undefined);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** The text of one that is not finished. One that cannot be read any more is there no longer. */
  find(key: string): string | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    const text = this.#read(entry);
    if (text !== undefined) return text;
    this.#drop(key);
    this.#noteDamaged(entry.segment, 1);
    this.#removeFinished();
    return undefined;
  }

  /** How many lines could not be read since it was opened. */
  get damaged(): number {
    return this.#damaged;
  }

  /** The files with lines that cannot be read, also of earlier. */
  damagedFiles(): string[] {
    const open = this.#segments.filter(({ damaged }) => damaged).map(({ path }) => path);
    return [...open, ...listDamaged(this.#folder).map(name => join(this.#folder, name))];
  }

  /** Throws where nothing could be appended now, as a file beside the others shows. */
  async ensureWritable(): Promise<void> {
    ensureFolder(this.#folder);
    const path = join(this.#folder, `.trial-${process.pid}`);
    try {
      const file = await open(path, 'w', 0o600);
      try {
        await file.write(Buffer.alloc(4096));
        await file.datasync();
      } finally {
        await file.close();
      }
    } finally {
      rmSync(path, { force: true });
    }
  }

  /** Those not finished, the first appended first. */
  keys(): string[] {
    return [...this.#entries.keys()];
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Writes the files anew with what is not finished and to be kept: of all else no byte stays. Nobody may append meanwhile. */
  rewrite(keep: (key: string, text: string) => boolean): void {
    const kept = [...this.#entries].flatMap(([key, entry]) => {
      const text = this.#read(entry);
      return text !== undefined && keep(key, text) ? [{ key, text }] : [];
    });
    const old = this.#segments.splice(0);
    this.#entries.clear();
    // It is removed below: what is appended next must not go into it.
    this.#current?.file.close().catch(() => undefined);
    this.#current = undefined;
    this.#head = undefined;
    if (kept.length) {
      const segment = this.#newSegment();
      const lines = kept.map(line => ({ ...line, bytes: bytesOf(line) }));
      writeFileAtomically(segment.path, Buffer.concat(lines.map(({ bytes }) => bytes)));
      this.#addLines(segment, 0, lines);
    }
    for (const { path } of old) rmSync(path, { force: true });
    for (const name of listNames(this.#folder)) if (DAMAGED.test(name)) rmSync(join(this.#folder, name), { force: true });
  }

  /**
   * Writes what is not finished as a journal of its own, into a folder that has none; nothing is made where nothing waits.
   * @returns how many there are
   */
  copyTo(folder: string): number {
    const lines = this.keys().flatMap(key => {
      const text = this.find(key);
      return text === undefined ? [] : [{ key, text }];
    });
    return writeJournal(folder, lines);
  }

  /** Resolves when what was appended and finished is written. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    await this.#leaveFile();
    if (this.#reading) closeSync(this.#reading.file);
    this.#reading = undefined;
  }

  #readSegment(segment: Segment): void {
    const bytes = readFileSync(segment.path);
    let damaged = 0;
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      if (!this.#takeLine(segment, bytes, start, end)) damaged++;
      start = end + 1;
    }
    // At the end a disk's fault, of the line's last byte or of whole blocks, looks as what a crash has torn does: nearly.
    const rest = bytes.subarray(start);
    const isWhole = [bytes.length, bytes.length - 1].some(end => end > start && this.#takeLine(segment, bytes, start, end));
    if (!isWhole && rest.includes(0)) damaged++;
    if (damaged) this.#noteDamaged(segment, damaged);
  }

  /** Whether it is what was written. */
  #takeLine(segment: Segment, bytes: Buffer, start: number, end: number): boolean {
    const line = parseLine(bytes.subarray(start, end));
    if (!line) return false;
    this.#drop(line.key);
    if (line.sign === '+') this.#addEntry(line.key, { segment, at: start, length: end - start });
    return true;
  }

  #noteDamaged(segment: Segment, lines: number): void {
    segment.damaged += lines;
    this.#damaged += lines;
    this.#onDamaged(segment.path, lines);
  }

  #addEntry(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    entry.segment.open++;
  }

  /** Takes up what lies in a file from a place on; gives where it ends. */
  #addLines(segment: Segment, from: number, lines: readonly { key: string; text?: string; bytes: Buffer }[]): number {
    let at = from;
    for (const { key, text, bytes } of lines) {
      if (text !== undefined) {
        this.#drop(key);
        this.#addEntry(key, { segment, at, length: bytes.length - 1 });
      }
      at += bytes.length;
    }
    return at;
  }

  #drop(key: string): boolean {
    const entry = this.#entries.get(key);
    if (!entry) return false;
    this.#entries.delete(key);
    entry.segment.open--;
    return true;
  }

  /** Where notes of what is finished lie in later files than the entries, an earlier file must not outlive a later one. */
  #removeFinished(): void {
    for (const segment of [...this.#segments]) {
      if (segment.open > 0 && this.#notesFinished) return;
      if (segment.open > 0 || segment === this.#head) continue;
      // What could not be read may still be of use to somebody.
      if (segment.damaged && existsSync(segment.path)) renameSync(segment.path, `${segment.path}.damaged`);
      else rmSync(segment.path, { force: true });
      this.#segments.splice(this.#segments.indexOf(segment), 1);
    }
  }

  #newSegment(): Segment {
    ensureFolder(this.#folder);
    const segment: Segment = { path: join(this.#folder, nameOf(++this.#lastNumber)), open: 0, damaged: 0 };
    this.#segments.push(segment);
    return segment;
  }

  async #openFile(): Promise<OpenFile> {
    if (this.#current && this.#current.size < this.#fileBytes) return this.#current;
    await this.#leaveFile();
    const segment = this.#newSegment();
    this.#head = segment;
    const opened = { segment, file: await open(segment.path, 'wx', 0o600), size: 0 };
    this.#current = opened;
    syncFolder(this.#folder);
    return opened;
  }

  async #leaveFile(): Promise<void> {
    const file = this.#current?.file;
    this.#current = undefined;
    this.#head = undefined;
    await file?.close();
    this.#removeFinished();
  }

  async #writeLines(waiting: readonly Line[]): Promise<void> {
    const opened = await this.#openFile();
    const { file, segment, size } = opened;
    const lines = waiting.map(line => ({ ...line, bytes: bytesOf(line) }));
    const group = Buffer.concat(lines.map(({ bytes }) => bytes));
    for (let written = 0; written < group.length; ) {
      written += (await file.write(group, written, group.length - written, size + written)).bytesWritten;
    }
    await file.datasync();
    opened.size = this.#addLines(segment, size, lines);
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeLines(lines);
        for (const { resolve } of lines) resolve();
      } catch (error) {
        // What of it lies there was promised to nobody, and nothing may come after it: the next goes into a file of its own.
        await this.#leaveFile().catch(() => undefined);
        const failed = new TryLaterError(`${this.#folder} cannot be written (${messageOf(error)})`, { cause: error });
        for (const { reject } of lines) reject(failed);
      }
    }
    this.#writing = undefined;
  }

  #write(key: string, text?: string): Promise<void> {
    if (this.#closed) return Promise.reject(new TryLaterError(`${this.#folder} is closed`));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, ...(text === undefined ? {} : { text }), resolve, reject });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /** Undefined where the file does not hold it any more. */
  #read({ segment: { path }, at, length }: Entry): string | undefined {
    if (this.#reading?.path !== path) {
      if (this.#reading) closeSync(this.#reading.file);
      this.#reading = undefined;
      if (!existsSync(path)) return undefined;
      this.#reading = { path, file: openSync(path, 'r') };
    }
    const bytes = Buffer.alloc(length);
    readSync(this.#reading.file, bytes, 0, length, at);
    return parseLine(bytes)?.text;
  }
}

/** Makes a journal in a folder that has none; nothing is made of nothing. Gives how many lines it has. */
export function writeJournal(folder: string, lines: readonly { key: string; text: string }[]): number {
  if (lines.length) {
    ensureFolder(folder);
    writeFileAtomically(join(folder, nameOf(1)), Buffer.concat(lines.map(bytesOf)));
  }
  return lines.length;
}

/** The files of a journal’s folder of which something could not be read. */
export const listDamaged = (folder: string): string[] => listNames(folder).filter(name => DAMAGED.test(name));

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
