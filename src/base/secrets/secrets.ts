import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { writeCommonFile } from '../common-files.ts';
import { NO_SERVICE } from '../config.ts';
import { messageOf, RingneckError, UsageError, unlessRefused } from '../errors.ts';
import { realPath } from '../files.ts';
import { openJsonFile } from '../json-file.ts';
import { accessCommand } from '../sign-in-again.ts';
import { emptied, endEntry, freeAt, hasEnded, isEmpty, renameEnded, resealEnded, withEnded } from './ended.ts';
import {
  beginGroup,
  createDerive,
  digestKeyOf,
  type EndedEntry,
  type Entry,
  entryOf,
  fileOf,
  findOpened,
  type Group,
  groupsOf,
  type Opened,
  openEntry,
  type Place,
  type SealedFile,
  sealedFile,
  sealSignIn,
  withDigestKey,
  withEntry,
  without,
} from './sealed-file.ts';
import { ensureSecretKey, findSecretKey, secretKeyPath } from './secret-key.ts';
import { isReplaced, readSignIn, type SignIn, tokensOf } from './sign-in.ts';

/** Where what asks the service finds its tokens. */
export type Tokens = Pick<Secrets, 'find' | 'isSame' | 'whyMissing' | 'digest' | 'findSignIn'>;

export interface LeftToOriginal {
  /** Whose sign-ins are the original's to renew, and end here with their tokens. */
  sign_in_again: string[];
  /** Of them, whose sign-in another key has sealed than there is now: it is not in the copy. */
  dropped: string[];
}

/** A sign-in that nobody is read with any more, which the service has not been known to take back. */
export interface EndedSignIn {
  name: string;
  /** Since when, in milliseconds. */
  at: number;
  /** Undefined: it cannot be read here and now, or that it is taken back was given up. */
  signIn: SignIn | undefined;
  /** Nobody tries any more to take it back: its tokens are forgotten. */
  isGivenUp: boolean;
  /** Of who had the name before: who has it now is told nothing of it. */
  isOfFormer: boolean;
  /** How often it could not be taken back. */
  tries: number;
}

interface SecretsOptions {
  folder: string;
  key?: string | undefined;
  address?: string | undefined;
  signIn?: object | null;
  onBound?: (name: string) => void;
}

/** As many access tokens of a sign-in are known to have been of it beside the last one: who works with one works for minutes. */
const MOST_EARLIER = 16;

/**
 * The accounts' tokens and sign-ins in `<data>/accounts.secret`, each for the address of the service that it was given for: no other gets it. Whoever
 * writes them owns the data folder; anybody may read, and sees what was written since. The key comes from RINGNECK_SECRET_KEY by scrypt, or
 * from `<data>/secret.key`, which the first `put` makes, by HKDF: it is random. Nothing is read or made before it is needed. What was sealed
 * with a key that is not there now stays, and is opened again when that key comes back.
 */
export class Secrets {
  readonly #folder: string;
  readonly #path: string;
  readonly #given: string | undefined;
  readonly #ours: string | undefined;
  readonly #signIn: object | null;
  readonly #onBound: (name: string) => void;
  readonly #file: { read(): SealedFile | undefined };
  readonly #derive = createDerive();
  /** What entries hold, while the file has them: each request asks for its token, and each commit whether it is still good. */
  readonly #openedEntries = new WeakMap<Entry, { key: object | undefined; text: string }>();
  /** Accounts of `withhold`, until they have another sign-in or token. */
  readonly #withheld = new Set<string>();
  /** By access token, which sign-in this process has found it in. */
  readonly #found = new Map<string, { name: string; id: string }>();

  /**
   * @param options.key RINGNECK_SECRET_KEY
   * @param options.address the service's, normalised: the one that gets tokens
   * @param options.signIn the client with which people sign in, where it is set
   * @param options.onBound a token without an address was bound to ours
   */
  constructor(options: SecretsOptions) {
    this.#folder = options.folder;
    this.#path = join(options.folder, 'accounts.secret');
    this.#given = options.key;
    this.#ours = options.address;
    this.#signIn = options.signIn ?? null;
    this.#onBound = options.onBound ?? (() => undefined);
    this.#file = openJsonFile(this.#path, sealedFile);
  }

  /** The token for our address, of a sign-in its access token. One that was sealed before tokens had addresses becomes ours. */
  find(name: string): string | undefined {
    const entry = this.#findEntry(name);
    if (entry === undefined || this.whyMissing(name) !== undefined) return undefined;
    const signIn = this.findSignIn(name);
    if (signIn) return this.#remember(name, signIn);
    const token = this.findOfAny(name);
    if (token !== undefined && entry[2] === undefined && this.#ours !== undefined) {
      this.#put(token, name, [this.#ours]);
      this.#onBound(name);
    }
    return token;
  }

  /** The sign-in for our address; undefined where the account has none, or a token alone. */
  findSignIn(name: string): SignIn | undefined {
    const entry = this.#findEntry(name);
    if (entry?.[3] === undefined || this.whyMissing(name) !== undefined) return undefined;
    return readSignIn(this.#open(entry), name);
  }

  /** Whether a token that `find` gave is still good for what it was given for: it is the account's, or was of the sign-in that it has. */
  isSame(name: string, token: string): boolean {
    if (this.#withheld.has(name)) return false;
    if (this.find(name) === token) return true;
    const found = this.#found.get(token);
    return found?.name === name && this.findSignIn(name)?.id === found.id;
  }

  /** Whose sign-in a token that `find` gave is of, as long as the account has that sign-in. */
  findHolder(token: string): { name: string; signIn: SignIn } | undefined {
    const found = this.#found.get(token);
    const signIn = found && this.findSignIn(found.name);
    return found && signIn?.id === found.id ? { name: found.name, signIn } : undefined;
  }

  /** The token, whatever address it was given for: not to be sent anywhere. */
  findOfAny(name: string): string | undefined {
    return this.listOfAny(name)[0];
  }

  /** The token, or of a sign-in all that it holds, the access token first; whatever address they were given for. */
  listOfAny(name: string): string[] {
    const entry = this.#findEntry(name);
    if (entry === undefined || this.#isElsewhere(name)) return [];
    const text = this.#open(entry);
    if (entry[3] === undefined) return [text];
    return tokensOf(readSignIn(text, name));
  }

  /** Whether the account has signed in, at whatever address. */
  hasSignIn(name: string): boolean {
    return this.#findEntry(name)?.[3] !== undefined;
  }

  /** Why `find` finds none, in a sentence that names the command; undefined when it finds one. */
  whyMissing(name: string): string | undefined {
    const entry = this.#findEntry(name);
    if (entry === undefined) return `no token: ${accessCommand(name, { signIn: this.#signIn })}`;
    const [, , address, kind] = entry;
    if (this.#isElsewhere(name)) {
      const [what, command] = kind ? ['sign-in', 'login'] : ['token', 'add'];
      return `the ${what} was sealed with another key than there is now: put that one back, or ringneck account ${command} ${name}`;
    }
    if (address === undefined || address === this.#ours || this.#ours === undefined) return undefined;
    if (kind) return `the sign-in was made at ${address}, and this service is ${this.#ours}: ringneck account login ${name}`;
    return (
      `the token was given for ${address}, and this service is ${this.#ours}: ringneck account add ${name} ` +
      '(with --keep-token: the same token for this address)'
    );
  }

  /** Like `whyMissing`, also where what there is cannot be opened: with another key than there is, or for it is damaged. */
  whyUnusable(name: string): string | undefined {
    try {
      const why = this.whyMissing(name);
      if (why === undefined) this.listOfAny(name);
      return why;
    } catch (error) {
      if (error instanceof RingneckError) return error.message;
      throw error;
    }
  }

  /**
   * Keeps a token for our address; without one, for the first at which it is used.
   * @param formerEndsAt as `putSignIn` takes it
   */
  put(name: string, token: string, formerEndsAt?: number): void {
    this.#put(token, name, [this.#ours], formerEndsAt);
    this.#withheld.delete(name);
  }

  /**
   * Keeps a sign-in for our address, which there must be. When this returns it is on the disk, and the one before is not.
   * @param formerEndsAt milliseconds; the one before is to be taken back since then. Undefined: it is forgotten.
   */
  putSignIn(name: string, signIn: SignIn, formerEndsAt?: number): void {
    if (this.#ours === undefined) throw new UsageError(NO_SERVICE);
    const isRenewed = unlessRefused(() => this.findSignIn(name)?.id) === signIn.id;
    this.#put(JSON.stringify(signIn satisfies SignIn), name, [this.#ours, 'sign-in'], formerEndsAt);
    if (!isRenewed) this.#withheld.delete(name);
    this.#remember(name, signIn);
  }

  /**
   * From here on what is given is sealed with the key that there is, also where that is not the one that the rest was sealed with: the rest
   * stays as it is.
   * @throws RingneckError where the key, or the file, cannot be used
   */
  acceptKey(): void {
    const content = this.#file.read();
    if (!content) findSecretKey(this.#folder, this.#given);
    if (!content || this.#findOpened(content)) return;
    const groups = groupsOf(content);
    this.#write(fileOf(this.#begin().group, groups));
  }

  /** Whose tokens and sign-ins cannot be opened with the key that there is, while some can. */
  namesElsewhere(): string[] {
    return this.names().filter(name => this.#isElsewhere(name));
  }

  /**
   * Keeps what an account has, or had until it ended, under another name too.
   * @throws UsageError, RingneckError where it cannot be opened
   */
  copy(from: string, to: string): void {
    this.#copyEnded(from, to);
    const entry = this.#findEntry(from);
    if (!entry) return;
    if (this.#isElsewhere(from)) throw new UsageError(`${from}: ${this.whyMissing(from)}`);
    const [, , address, kind] = entry;
    this.#put(this.#open(entry), to, [address, kind]);
  }

  #copyEnded(from: string, to: string): void {
    const ended = this.listEnded().filter(({ name }) => name === from);
    const content = this.#file.read();
    if (!content || !ended.length) return;
    const opened = ended.every(({ isGivenUp }) => isGivenUp) ? undefined : this.#getOpened(content);
    this.#change(group => renameEnded(group, from, to, opened));
  }

  /** Takes back what `copy` has kept by the other name; what had ended by that one before stays. */
  removeCopy(from: string, to: string): void {
    this.remove(to);
    for (const { name, at } of this.listEnded()) if (name === from) this.removeEnded({ name: to, at });
  }

  #change(change: (group: Group) => Group): void {
    const content = this.#file.read();
    const [first, ...others] = content ? groupsOf(content).map(change) : [];
    if (first) this.#write(fileOf(first, others));
  }

  #changeEnded(change: (ended: EndedEntry) => EndedEntry[]): void {
    this.#change(group => withEnded(group, (group.ended ?? []).flatMap(change)));
  }

  #put(text: string, name: string, place: Place, formerEndsAt?: number): void {
    const content = this.#file.read();
    const opened = content ? this.#getOpened(content) : this.#begin();
    const groups = content ? groupsOf(content) : [];
    const at = formerEndsAt === undefined ? undefined : freeAt(groups, name, formerEndsAt);
    const withoutFormer = (group: Group) => (at === undefined ? without(group, account => account === name) : endEntry(group, name, at));
    const group = withEntry({ ...opened, group: withoutFormer(opened.group) }, name, text, place);
    this.#write(fileOf(group, groups.filter(({ salt }) => salt !== group.salt).map(withoutFormer)));
  }

  /** The access token. What was given out of a sign-in before is known for as long as somebody may work with it. */
  #remember(name: string, { id, accessToken }: SignIn): string {
    // Some services give who signs in again the same token: it is of the new sign-in then.
    if (unlessRefused(() => this.findHolder(accessToken))) return accessToken;
    this.#found.delete(accessToken);
    const earlier = [...this.#found].filter(([, found]) => found.name === name);
    for (const [token] of earlier.slice(0, Math.max(0, earlier.length - MOST_EARLIER))) this.#found.delete(token);
    this.#found.set(accessToken, { name, id });
    return accessToken;
  }

  #open(entry: Entry): string {
    const content = this.#file.read();
    const key = content && this.#getOpened(content).key;
    const text = key && this.#openWith(entry, key);
    if (text !== undefined) return text;
    const [name, , , kind] = entry;
    const [what, command] = kind ? ['sign-in', 'login'] : ['token', 'add'];
    throw new RingneckError(
      `${this.#path} is damaged: the ${what} of ${name} cannot be read. Give it again: ringneck account ${command} ${name}`,
    );
  }

  #openWith(entry: Entry, key: Opened['key']): string | undefined {
    const known = this.#openedEntries.get(entry);
    if (known && known.key === key) return known.text;
    const text = openEntry(entry, key);
    if (text !== undefined) this.#openedEntries.set(entry, { key, text });
    return text;
  }

  /**
   * Forgets what sign-ins are renewed with: another folder has the same, which works once. Access tokens stay, for as long as they live.
   * @returns whose sign-ins they are; `dropped`: those that another key has sealed, of which nothing stays
   */
  forgetRenewals(): LeftToOriginal {
    const sign_in_again = this.names().filter(name => this.hasSignIn(name));
    const dropped = sign_in_again.filter(name => this.#isElsewhere(name));
    for (const name of sign_in_again) {
      const entry = this.#findEntry(name);
      if (!entry || dropped.includes(name)) continue;
      const [, , ...place] = entry;
      const left: SignIn = { ...readSignIn(this.#open(entry), name), refreshToken: null, previous: null, isLeftToOriginal: true };
      this.#put(JSON.stringify(left), name, place);
    }
    for (const name of dropped) this.remove(name);
    this.#leaveEnded();
    return { sign_in_again, dropped };
  }

  /** The original takes back what has ended. What another key has sealed stays: nobody is read with it here either. */
  #leaveEnded(): void {
    const content = this.#file.read();
    const opened = content && this.#findOpened(content);
    if (!opened || !this.listEnded().length) return;
    this.#changeEnded(ended => [hasEnded(opened.group, ended) ? emptied(ended) : ended]);
  }

  /** Needs no key. */
  remove(name: string): void {
    if (this.names().includes(name)) this.#change(group => without(group, account => account === name));
  }

  /** Like `remove`, with what has ended. */
  forget(name: string): void {
    this.remove(name);
    if (this.listEnded().some(ended => ended.name === name)) this.#changeEnded(ended => (ended.entry[0] === name ? [] : [ended]));
  }

  /**
   * Has nobody be read with a sign-in any more; a token is forgotten. Needs no key.
   * @param at milliseconds: since when
   * @param isKept whether it is kept until it is taken back; else that it was not is all that stays
   */
  end(name: string, at: number, { isKept = true } = {}): void {
    const content = this.#file.read();
    if (!content || !this.names().includes(name)) return;
    const free = freeAt(groupsOf(content), name, at);
    this.#change(group => endEntry(group, name, free, isKept));
  }

  /** Has nothing count as asked for with what an account has, in this process, be it readable or not: what `end` could not write. */
  withhold(name: string): void {
    this.#withheld.add(name);
  }

  /**
   * Keeps a sign-in that nobody is ever read with until it is taken back.
   * @returns by what `removeEnded` knows it
   */
  putEnded(name: string, signIn: SignIn, at: number): Pick<EndedSignIn, 'name' | 'at'> {
    const content = this.#file.read();
    const ended = { name, at: freeAt(content ? groupsOf(content) : [], name, at) };
    this.renewEnded(ended, signIn);
    return ended;
  }

  /** The sign-ins that are to be taken back. Without the key that there was their names are known, and no more. */
  listEnded(): EndedSignIn[] {
    const content = this.#file.read();
    if (!content || !groupsOf(content).some(({ ended }) => ended)) return [];
    const opened = this.#findOpenedIfAny(content);
    const read = (entry: EndedEntry['entry']) => {
      const text = opened && (this.#ours ?? entry[2]) === entry[2] ? openEntry(entry, opened.key) : undefined;
      return text === undefined ? undefined : unlessRefused(() => readSignIn(text, entry[0]));
    };
    const found = new Map<string, EndedSignIn>();
    for (const ended of groupsOf(content).flatMap(({ ended = [] }) => ended)) {
      const { at, entry } = ended;
      const id = JSON.stringify([entry[0], at]);
      const known = found.get(id);
      const isGivenUp = isEmpty(ended) && known?.isGivenUp !== false;
      const isOfFormer = ended.isOfFormer === true || known?.isOfFormer === true;
      const tries = Math.max(ended.tries ?? 0, known?.tries ?? 0);
      found.set(id, { name: entry[0], at, signIn: read(entry) ?? known?.signIn, isGivenUp, isOfFormer, tries });
    }
    return [...found.values()];
  }

  /** Like `#findOpened`; a key that is damaged opens nothing. */
  #findOpenedIfAny(content: SealedFile): Opened | undefined {
    return unlessRefused(() => this.#findOpened(content));
  }

  /** What has ended by a name is from now on of who had it before. */
  leaveToNext(name: string): void {
    if (!this.listEnded().some(ended => ended.name === name && !ended.isOfFormer)) return;
    this.#changeEnded(ended => [ended.entry[0] === name ? { ...ended, isOfFormer: true } : ended]);
  }

  /** It is taken back. */
  removeEnded({ name, at }: Pick<EndedSignIn, 'name' | 'at'>): void {
    this.#changeEnded(ended => (ended.entry[0] === name && ended.at === at ? [] : [ended]));
  }

  /** It could not be taken back once more. */
  noteTry({ name, at }: Pick<EndedSignIn, 'name' | 'at'>): void {
    this.#changeEnded(ended => [ended.entry[0] === name && ended.at === at ? { ...ended, tries: (ended.tries ?? 0) + 1 } : ended]);
  }

  /** Nobody tries any more to take it back: its tokens are forgotten, and that it was not taken back stays known. */
  emptyEnded({ name, at }: Pick<EndedSignIn, 'name' | 'at'>): void {
    this.#changeEnded(ended => [ended.entry[0] === name && ended.at === at ? emptied(ended) : ended]);
  }

  /** Keeps what a sign-in that has ended was renewed to in its place, also where that is gone meanwhile: nobody else knows it. */
  renewEnded({ name, at }: Pick<EndedSignIn, 'name' | 'at'>, signIn: SignIn): void {
    if (this.#ours === undefined) throw new UsageError(NO_SERVICE);
    const content = this.#file.read();
    const { group, key } = content ? this.#getOpened(content) : this.#begin();
    const others = content ? groupsOf(content).filter(({ salt }) => salt !== group.salt) : [];
    const entry = sealSignIn(key, name, JSON.stringify(signIn satisfies SignIn), this.#ours);
    const isIt = (one: EndedEntry) => one.entry[0] === name && one.at === at;
    const restOf = ({ ended = [] }: Group) => ended.filter(one => !isIt(one));
    const known = [group, ...others].flatMap(({ ended = [] }) => ended).find(isIt);
    this.#write(
      fileOf(
        withEnded(group, [...restOf(group), { ...known, at, entry }]),
        others.map(other => withEnded(other, restOf(other))),
      ),
    );
  }

  /** Which of these accounts has one of these tokens, or had one as an access token of the sign-in that it has. */
  findOwner(tokens: readonly (string | null | undefined)[], accounts: readonly string[]): string | undefined {
    const content = this.#file.read();
    const opened = content && this.#findOpenedIfAny(content);
    const among = new Set(accounts);
    // What cannot be opened here is nothing to compare with.
    const holdsOne = (entry: Entry) => {
      const text = opened && this.#openWith(entry, opened.key);
      if (text === undefined) return false;
      if (entry[3] === undefined) return tokens.includes(text);
      const signIn = unlessRefused(() => readSignIn(text, entry[0]));
      if (!signIn) return false;
      return tokensOf(signIn).some(token => tokens.includes(token)) || tokens.some(token => token && isReplaced(signIn, token));
    };
    return opened?.group.accounts.find(entry => among.has(entry[0]) && holdsOne(entry))?.[0];
  }

  names(): string[] {
    const content = this.#file.read();
    const named = content ? groupsOf(content).flatMap(({ accounts }) => accounts.map(([account]) => account)) : [];
    return [...new Set(named)].sort();
  }

  /** HMAC-SHA256 of a text under the same key, or the one before it. */
  digest(text: string): string {
    // Its salt is kept: the same text shall have the same digest in another process.
    const content = this.#file.read() ?? this.#write(this.#begin().group);
    return createHmac('sha256', this.#digestKey(this.#getOpened(content)))
      .update(text)
      .digest('base64url');
  }

  #digestKey(opened: Opened): Buffer {
    const key = digestKeyOf(opened);
    if (key) return key;
    throw new RingneckError(`${this.#path} is damaged: the key of its digests cannot be read. Put the file back from a copy.`);
  }

  /** The one that can be opened, if there is one. */
  #findEntry(name: string): Entry | undefined {
    const content = this.#file.read();
    if (!content) return undefined;
    const groups = groupsOf(content);
    const opened = groups.length > 1 ? this.#findOpenedIfAny(content) : undefined;
    const all = [...(opened ? [opened.group] : []), ...groups];
    return all.map(group => entryOf(group, name)).find(entry => entry);
  }

  /** Whether an account is in another group than the one that our key opens. Where that is none the key is wrong for all. */
  #isElsewhere(name: string): boolean {
    const content = this.#file.read();
    if (!content?.others) return false;
    const opened = this.#findOpened(content);
    return opened !== undefined && !entryOf(opened.group, name) && groupsOf(content).some(group => entryOf(group, name));
  }

  #findOpened(content: SealedFile): Opened | undefined {
    const text = findSecretKey(this.#folder, this.#given);
    return text === undefined ? undefined : findOpened(groupsOf(content), text, this.#derive);
  }

  #getOpened(content: SealedFile): Opened {
    const opened = this.#findOpened(content);
    if (opened) return opened;
    const keyPath = secretKeyPath(this.#folder);
    const isLost = 'Where it is lost: ringneck account add NAME, or login, one account after the other';
    if (findSecretKey(this.#folder, this.#given) === undefined) {
      throw new UsageError(
        `${this.#path} was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${keyPath} back from a copy. ${isLost}.`,
      );
    }
    const source = this.#given === undefined ? keyPath : 'RINGNECK_SECRET_KEY';
    throw new UsageError(
      `${source} is not the key that ${this.#path} was sealed with: set RINGNECK_SECRET_KEY to the former one` +
        `${this.#given === undefined ? ', or put the former secret.key back' : ', or unset it to use secret.key'}; ` +
        `to go on with this one: ringneck key rotate --former. ${isLost}.`,
    );
  }

  #begin(): Opened {
    const text = ensureSecretKey(this.#folder, this.#given);
    return beginGroup(text, this.#given === undefined, this.#derive);
  }

  #write(content: SealedFile): SealedFile {
    try {
      writeCommonFile(this.#folder, 'accounts.secret', `${JSON.stringify(content, undefined, 2)}\n`);
    } catch (error) {
      if (error instanceof RingneckError) throw error;
      const fix = 'have it and its folder writable for the user who runs ringneck, with room on the disk, and try again';
      throw new RingneckError(`${realPath(this.#path)} cannot be written (${messageOf(error)}): ${fix}.`, 1, { cause: error });
    }
    return content;
  }

  /** Whether a key opens anything; undefined where nothing is sealed. */
  isOpenedBy(key: string): boolean | undefined {
    const content = this.#file.read();
    return content && findOpened(groupsOf(content), key, this.#derive) !== undefined;
  }

  /** Whose token or sign-in a key does not open. */
  listClosed(key: string): string[] {
    const content = this.#file.read();
    const opened = content && findOpened(groupsOf(content), key, this.#derive);
    if (!opened) return this.names();
    return this.names().filter(name => {
      const entry = entryOf(opened.group, name);
      return entry === undefined || openEntry(entry, opened.key) === undefined;
    });
  }

  /** Seals all that a key opens with the next one too: from here on either opens it. What is damaged stays. */
  addKey(former: string, next: string): void {
    const content = this.#file.read();
    const from = content && findOpened(groupsOf(content), former, this.#derive);
    if (!content || !from) return;
    const groups = groupsOf(content);
    const known = findOpened(groups, next, this.#derive);
    const begun = known ?? beginGroup(next, this.#given === undefined, this.#derive);
    let group: Group = known ? known.group : withDigestKey(begun, this.#digestKey(from));
    for (const entry of from.group.accounts) {
      const [name, , ...place] = entry;
      if (entryOf(group, name)) continue;
      const text = openEntry(entry, from.key);
      if (text !== undefined) group = withEntry({ group, key: begun.key }, name, text, place);
    }
    group = resealEnded(group, begun.key, from);
    this.#write(
      fileOf(
        group,
        groups.filter(({ salt }) => salt !== group.salt),
      ),
    );
  }

  /**
   * Has what a key opens opened by that one alone. What another key alone opens stays.
   * @returns whether another one opened it too
   */
  keepKey(key: string): boolean {
    const content = this.#file.read();
    const opened = content && findOpened(groupsOf(content), key, this.#derive);
    if (!content?.others || !opened) return false;
    const { group } = opened;
    const isKept = (name: string) => entryOf(group, name) !== undefined;
    const others = groupsOf(content).filter(({ salt }) => salt !== group.salt);
    this.#write(
      fileOf(
        group,
        others
          .map(other =>
            withEnded(
              without(other, isKept),
              (other.ended ?? []).filter(ended => !hasEnded(group, ended)),
            ),
          )
          .filter(({ accounts, ended }) => accounts.length || ended),
      ),
    );
    return others.some(({ accounts }) => accounts.some(([name]) => isKept(name)));
  }
}
