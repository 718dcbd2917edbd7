import { UsageError } from '../errors.ts';
import { ensureSecretKey, findSecretKey, newSecretKey, replaceSecretKey, secretKeyPath } from './secret-key.ts';

/** A file in which something is sealed with the key of the data folder. */
export interface KeyHolder {
  /** Whether a key opens it; undefined where nothing is sealed. */
  isOpenedBy(key: string): boolean | undefined;
  /** Seals what one key opens with another one too: from then on either opens it, whatever other keys do. */
  addKey(former: string, next: string): void;
  /**
   * Has what a key opens opened by that one alone.
   * @returns whether another one opened it too
   */
  keepKey(key: string): boolean;
  /** What a key does not open: accounts by name, or the path of the file. */
  listClosed(key: string): string[];
}

export interface RotateReport {
  /** Where the key is. */
  key: 'RINGNECK_SECRET_KEY' | 'secret.key';
  /** What the key does not open, for another one has sealed it, or it is damaged: whose token or sign-in, and the path of `client.json`. */
  unreadable: string[];
  /** A change that had been interrupted was finished, and nothing else done: the key opens everything. */
  finished: boolean;
}

interface Rotation {
  folder: string;
  /** RINGNECK_SECRET_KEY */
  given: string | undefined;
  holders: readonly KeyHolder[];
  /** What was typed or piped as the key that something is sealed with, where it is neither in RINGNECK_SECRET_KEY nor in `secret.key`. */
  former?: string | undefined;
}

const SET_FIRST =
  'RINGNECK_SECRET_KEY is the key that all is sealed with. To change it end ringneck up, keep a copy of the key, set RINGNECK_SECRET_KEY to another text ' +
  'of 16 characters at least (openssl rand -base64 32) wherever it is set, then: ringneck key rotate --former, which asks for the key of before';

/**
 * Seals all that is sealed with another key: a new one in `secret.key`, or the one that RINGNECK_SECRET_KEY holds already. Killed at any
 * moment, what there is as a key then opens everything, and another call finishes it.
 * @throws UsageError that says what to do where the former key or the next one is missing
 */
export function rotateKey({ folder, given, holders, former }: Rotation): RotateReport {
  const opens = (key: string) => holders.some(holder => holder.isOpenedBy(key) === true);
  const kept = findSecretKey(folder, undefined);
  const listClosed = (key: string) => holders.flatMap(holder => holder.listClosed(key));
  const change = (before: string, next: string, isNew: boolean): RotateReport => {
    for (const holder of holders) holder.addKey(before, next);
    if (isNew) replaceSecretKey(folder, next);
    for (const holder of holders) holder.keepKey(next);
    return { key: given === undefined ? 'secret.key' : 'RINGNECK_SECRET_KEY', unreadable: listClosed(next), finished: false };
  };
  if (holders.every(holder => holder.isOpenedBy(given ?? kept ?? '') === undefined)) {
    throw new UsageError(`nothing is sealed in ${folder} yet, so there is no key to change`);
  }
  if (former !== undefined) {
    const forms = formsOf(former);
    const present = given ?? kept;
    const before = forms.find(form => form !== present && opens(form));
    if (before === undefined) {
      if (present !== undefined && forms.includes(present) && opens(present))
        throw new UsageError(`the key that was given is not a former one: ${tellWhere(folder, given)} holds it now`);
      throw new UsageError(`the key that was given opens nothing in ${folder}: give the one that was in use before, whole`);
    }
    return change(before, ensureSecretKey(folder, given), false);
  }
  if (given === undefined) {
    if (kept !== undefined && opens(kept)) return change(kept, newSecretKey(), true);
    throw new UsageError(`${secretKeyPath(folder)} ${kept === undefined ? 'is missing' : `opens nothing in ${folder}`}: ${GIVE_FORMER}`);
  }
  const isBehind = (holder: KeyHolder) => kept !== undefined && holder.isOpenedBy(kept) === true && holder.isOpenedBy(given) !== true;
  if (kept !== undefined && holders.some(isBehind)) return change(kept, given, false);
  if (!opens(given)) throw new UsageError(`RINGNECK_SECRET_KEY opens nothing in ${folder}: ${GIVE_FORMER}`);
  const wasBegun = holders.map(holder => holder.keepKey(given)).includes(true);
  const unreadable = listClosed(given);
  if (!wasBegun && !unreadable.length) throw new UsageError(SET_FIRST);
  return { key: 'RINGNECK_SECRET_KEY', unreadable, finished: !unreadable.length };
}

/** RINGNECK_SECRET_KEY counts with its blanks and line breaks, which a pipe adds and a terminal cannot give. */
function formsOf(typed: string): string[] {
  const line = typed.replace(/\r?\n$/, '');
  return [...new Set([typed, line, typed.trim(), `${line}\n`])];
}

const GIVE_FORMER = 'give the key of before: ringneck key rotate --former';

const tellWhere = (folder: string, given: string | undefined) => (given === undefined ? secretKeyPath(folder) : 'RINGNECK_SECRET_KEY');
