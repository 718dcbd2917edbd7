import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { EnrolmentSettings } from '../../base/config.ts';
import { messageOf, UsageError } from '../../base/errors.ts';

/** What a study tells those whom it invites. */
export interface StudyText {
  text: string;
  /** SHA-256 of the file, hexadecimal. */
  hash: string;
}

const MOST_BYTES = 65_536;

/**
 * The study's own text as its file holds it now; undefined where there is none.
 * @throws UsageError naming the file
 */
export function readStudyText({ studyText: path }: Pick<EnrolmentSettings, 'studyText'>): StudyText | undefined {
  if (path === undefined) return undefined;
  const bytes = readShort(path);
  if (!isUtf8(bytes) || bytes.includes(0)) throw new UsageError(`RINGNECK_STUDY_TEXT: ${path} is no text in UTF-8`);
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (!text.trim()) throw new UsageError(`RINGNECK_STUDY_TEXT: ${path} is empty`);
  return { text, hash: createHash('sha256').update(bytes).digest('hex') };
}

function readShort(path: string): Buffer {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new Error(`${path} is no regular file`);
    if (stats.size > MOST_BYTES) throw new Error(`${path} has ${stats.size} bytes, and ${MOST_BYTES} are the most`);
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`RINGNECK_STUDY_TEXT cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
