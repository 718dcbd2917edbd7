import { closeSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf, TryLaterError } from './errors.ts';
import { ensureFolder, syncFolder, writeFileAtomically } from './files.ts';

/** What has been taken on and not settled yet, durable in a folder of our own. Only one process may have it open. */
export interface Journal {
  /**
   * Resolves when the text is on the disk; all that wait at one moment share one sync. A known key keeps its text. Keys are of `A–Z a–z 0–9
   * _ . -`, texts hold no line break.
   * @throws TryLaterError when it cannot be written
   */
  append(key: string, text: string): Promise<void>;
  /** Nothing is left to be done for a key, known or not. */
  settle(key: string): void;
  has(key: string): boolean;
  /** The text of one that is not settled. */
  find(key: string): string | undefined;
  /** Those not settled, the first appended first. */
  keys(): string[];
  readonly size: number;
  /** Writes the files anew with what is not settled and to be kept: of all else no byte stays. Nobody may append meanwhile. */
  rewrite(keep: (key: string, text: string) => boolean): void;
  /** Resolves when what was appended and settled is written. */
  close(): Promise<void>;
}

export interface JournalOptions {
  /** Notes in the journal itself what is settled: for who has no ledger to know it from. */
  notesSettled?: boolean;
  /** From this size on a file is followed by the next. */
  fileBytes?: number;
}

/** One file. It is removed as soon as everything in it is settled. */
interface Segment {
  path: string;
  open: number;
}

interface Entry {
  segment: Segment;
  at: number;
  length: number;
}

/** A line to be written: an entry, or the note that one is settled. */
interface Line {
  key: string;
  text?: string;
  resolve(): void;
  reject(error: unknown): void;
}

const FILE_BYTES = 1_048_576;
const FILE = /^(\d{10})\.journal$/;
/** Half of a file that `rewrite` was making. The folder may be a link to one of others. */
const HALF_WRITTEN = /^\d{10}\.journal\.\d+(?:\.[0-9a-f]+)?\.new$/;
const LINE = /^([0-9a-f]{8}) ([+-]) ([\w.-]+)(?: (.*))?$/s;

const lineOf = ({ key, text }: Pick<Line, 'key' | 'text'>): Buffer => {
  const content = text === undefined ? `- ${key}` : `+ ${key} ${text}`;
  return Buffer.from(`${sumOf(content)} ${content}\n`);
};
const sumOf = (content: string | Buffer) => crc32(content).toString(16).padStart(8, '0');

/** Opens what a folder holds; the folder is made with the first entry. What a crash has torn at the end of a file was promised to nobody. */
export function openJournal(folder: string, { notesSettled = false, fileBytes = FILE_BYTES }: JournalOptions = {}): Journal {
  const entries = new Map<string, Entry>();
  const segments: Segment[] = [];
  let lastNumber = 0;
  let current: { segment: Segment; file: FileHandle; size: number } | undefined;
  /** What is appended next goes into it: it stays though it holds nothing yet, also while the disk makes it. */
  let head: Segment | undefined;
  let reading: { path: string; file: number } | undefined;
  let waiting: Line[] = [];
  let writing: Promise<void> | undefined;
  let closed = false;

  for (const name of listNames(folder)) {
    const number = FILE.exec(name)?.[1];
    if (HALF_WRITTEN.test(name)) rmSync(join(folder, name), { force: true });
    if (number === undefined) continue;
    lastNumber = Number(number);
    const segment: Segment = { path: join(folder, name), open: 0 };
    segments.push(segment);
    readSegment(segment);
  }
  removeFinished();

  function readSegment(segment: Segment): void {
    const bytes = readFileSync(segment.path);
    for (let start = 0; start < bytes.length; ) {
      const end = bytes.indexOf(10, start);
      if (end < 0) return;
      const line = LINE.exec(bytes.toString('utf8', start, end));
      if (line && sumOf(bytes.subarray(start + 9, end)) === line[1]) {
        const [, , sign, key] = line as unknown as [string, string, string, string];
        drop(key);
        if (sign === '+') addEntry(key, { segment, at: start, length: end - start });
      }
      start = end + 1;
    }
  }

  function addEntry(key: string, entry: Entry): void {
    entries.set(key, entry);
    entry.segment.open++;
  }

  function drop(key: string): boolean {
    const entry = entries.get(key);
    if (!entry) return false;
    entries.delete(key);
    entry.segment.open--;
    return true;
  }

  /** Where notes of what is settled lie in later files than the entries, an earlier file must not outlive a later one. */
  function removeFinished(): void {
    for (let i = 0; i < segments.length; ) {
      const segment = segments[i]!;
      if (segment.open > 0 && notesSettled) return;
      if (segment.open > 0 || segment === head) i++;
      else {
        rmSync(segment.path, { force: true });
        segments.splice(i, 1);
      }
    }
  }

  function newSegment(): Segment {
    ensureFolder(folder);
    const segment: Segment = { path: join(folder, `${String(++lastNumber).padStart(10, '0')}.journal`), open: 0 };
    segments.push(segment);
    return segment;
  }

  async function openFile(): Promise<NonNullable<typeof current>> {
    if (current && current.size < fileBytes) return current;
    await leaveFile();
    const segment = newSegment();
    head = segment;
    current = { segment, file: await open(segment.path, 'wx', 0o600), size: 0 };
    syncFolder(folder);
    return current;
  }

  async function leaveFile(): Promise<void> {
    const file = current?.file;
    current = undefined;
    head = undefined;
    await file?.close();
    removeFinished();
  }

  async function writeLines(lines: readonly Line[]): Promise<void> {
    const { file, segment, size } = await openFile();
    const bytes = lines.map(lineOf);
    const group = Buffer.concat(bytes);
    for (let written = 0; written < group.length; ) {
      written += (await file.write(group, written, group.length - written, size + written)).bytesWritten;
    }
    await file.datasync();
    let at = size;
    for (const [i, { key, text }] of lines.entries()) {
      const length = bytes[i]!.length - 1;
      if (text !== undefined) {
        drop(key);
        addEntry(key, { segment, at, length });
      }
      at += length + 1;
    }
    current!.size = at;
  }

  async function writeWaiting(): Promise<void> {
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      try {
        await writeLines(lines);
        for (const { resolve } of lines) resolve();
      } catch (error) {
        // What of it lies there was promised to nobody, and nothing may come after it: the next goes into a file of its own.
        await leaveFile().catch(() => undefined);
        const failed = new TryLaterError(`${folder} cannot be written (${messageOf(error)})`, { cause: error });
        for (const { reject } of lines) reject(failed);
      }
    }
    writing = undefined;
  }

  function write(key: string, text?: string): Promise<void> {
    if (closed) return Promise.reject(new TryLaterError(`${folder} is closed`));
    return new Promise((resolve, reject) => {
      waiting.push({ key, ...(text === undefined ? {} : { text }), resolve, reject });
      writing ??= writeWaiting();
    });
  }

  function read({ segment, at, length }: Entry): string {
    if (reading?.path !== segment.path) {
      if (reading) closeSync(reading.file);
      reading = undefined;
      reading = { path: segment.path, file: openSync(segment.path, 'r') };
    }
    const bytes = Buffer.alloc(length);
    readSync(reading.file, bytes, 0, length, at);
    return LINE.exec(bytes.toString())![4]!;
  }

  return {
    append: async (key, text) => {
      if (!entries.has(key)) await write(key, text);
    },
    settle(key) {
      if (!drop(key)) return;
      removeFinished();
      // A note that cannot be written is not missed: what it speaks of is done once more, which does no harm.
      if (notesSettled) write(key).catch(() => undefined);
    },
    has: key => entries.has(key),
    find(key) {
      const entry = entries.get(key);
      return entry && read(entry);
    },
    keys: () => [...entries.keys()],
    get size() {
      return entries.size;
    },
    rewrite(keep) {
      const kept = [...entries].map(([key, entry]) => ({ key, text: read(entry) })).filter(({ key, text }) => keep(key, text));
      const old = segments.splice(0);
      entries.clear();
      // It is removed below: what is appended next must not go into it.
      current?.file.close().catch(() => undefined);
      current = undefined;
      head = undefined;
      if (kept.length) {
        const segment = newSegment();
        const lines = kept.map(lineOf);
        writeFileAtomically(segment.path, Buffer.concat(lines));
        let at = 0;
        for (const [i, { key }] of kept.entries()) {
          addEntry(key, { segment, at, length: lines[i]!.length - 1 });
          at += lines[i]!.length;
        }
      }
      for (const { path } of old) rmSync(path, { force: true });
    },
    async close() {
      closed = true;
      await writing;
      await leaveFile();
      if (reading) closeSync(reading.file);
      reading = undefined;
    },
  };
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
