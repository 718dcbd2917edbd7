import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { messageOf, UsageError } from './errors.ts';
import type { Log } from './log.ts';

export interface Failure {
  reason: 'account_parked' | 'run_failed' | 'events_missed' | 'sign_in_ending' | 'consent_withdrawn' | 'invitation_refused';
  /** The account. */
  user?: string;
  collection?: string;
  /** One sentence; never a token. */
  message: string;
  /** It may have been told before: not more than once an hour, also of a withdrawal. */
  isRepeat?: boolean;
}

/** Has the command of RINGNECK_ON_FAILURE run; neither waits nor throws. */
export type OnFailure = (failure: Failure) => void;

/** What runs it. */
export interface FailureCommand extends OnFailure {
  /** What waits is told by the name that an account has by now. */
  rename(from: string, to: string): void;
  /** What waits of who was erased is told to nobody. */
  forget(user: string): void;
  /** Waits for what runs and what waits, but not long; what still runs then goes on without us. Nothing but a withdrawal begins afterwards. */
  close(): Promise<void>;
}

export interface OnFailureOptions {
  /** RINGNECK_ON_FAILURE; without it nothing is run. */
  command: string | undefined;
  /** What the command inherits, but for our settings: some are secrets. */
  env: NodeJS.ProcessEnv;
  log: Log;
  /** Milliseconds since the epoch. */
  now: () => number;
  limitMs?: number;
  closeMs?: number;
}

const MOST_WAITING = 100;
const HOUR_MS = 3_600_000;
const LONGEST_MESSAGE = 2_000;

/**
 * Makes what runs the command: one at a time, the same reason of the same user and collection at most once an hour, and each refusal of an
 * invitation that says something else. A withdrawal waits for nothing: when the call returns, its command has begun and outlives us, or the
 * log has why it could not.
 * @throws UsageError when the command cannot be read
 */
export function createOnFailure(options: OnFailureOptions): FailureCommand {
  if (options.command === undefined) {
    const nothing = () => undefined;
    return Object.assign(nothing, { rename: nothing, forget: nothing, close: async () => undefined });
  }
  const [file, ...parameters] = splitWords(options.command);
  if (!file) throw new UsageError('RINGNECK_ON_FAILURE is empty: it is to be a command');
  const runner = new FailureRunner(file, parameters, options);
  return Object.assign((failure: Failure) => runner.add(failure), {
    rename: (from: string, to: string) => runner.rename(from, to),
    forget: (user: string) => runner.forget(user),
    close: () => runner.close(),
  });
}

class FailureRunner {
  readonly #file: string;
  readonly #parameters: string[];
  readonly #options: OnFailureOptions;
  readonly #base: NodeJS.ProcessEnv;
  #waiting: Failure[] = [];
  readonly #last = new Map<string, number>();
  #dropped = 0;
  #closed = false;
  #working: Promise<void> = Promise.resolve();
  readonly #withdrawals = new Set<Promise<void>>();
  #busy = false;

  constructor(file: string, parameters: string[], options: OnFailureOptions) {
    this.#file = file;
    this.#parameters = parameters;
    this.#options = options;
    const inherited = Object.entries(options.env).filter(([name]) => !name.startsWith('RINGNECK_') || name === 'RINGNECK_DATA');
    this.#base = Object.fromEntries(inherited);
  }

  add(failure: Failure): void {
    // Whoever calls forgets next what would have it told again.
    if (failure.reason === 'consent_withdrawn') this.#tellAtOnce(failure);
    else if (this.#closed) return;
    else if (this.#waiting.length >= MOST_WAITING) this.#dropped++;
    else if (!this.#isRepeated(failure)) {
      this.#waiting.push(failure);
      if (!this.#busy) this.#working = this.#work();
    }
  }

  rename(from: string, to: string): void {
    const now = `(${from} is called ${to} by now)`;
    this.#waiting = this.#waiting.map(one => (one.user === from ? { ...one, user: to, message: `${one.message} ${now}` } : one));
    this.#forgetSaid(from);
  }

  forget(user: string): void {
    this.#waiting = this.#waiting.filter(one => one.user !== user);
    this.#forgetSaid(user);
  }

  /** The name may be somebody else's. */
  #forgetSaid(user: string): void {
    for (const key of this.#last.keys()) if (JSON.parse(key)[1] === user) this.#last.delete(key);
  }

  #tellAtOnce(failure: Failure): void {
    const isRepeated = this.#isRepeated(failure);
    if (isRepeated && failure.isRepeat) return;
    const told = this.#tell(failure).finally(() => this.#withdrawals.delete(told));
    this.#withdrawals.add(told);
  }

  async close(): Promise<void> {
    this.#closed = true;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<'late'>(resolve => {
      timer = setTimeout(resolve, this.#options.closeMs ?? 5_000, 'late');
    });
    const left = (await Promise.race([Promise.all([this.#working, ...this.#withdrawals]), patience])) === 'late';
    clearTimeout(timer);
    if (!left) return;
    const notRun = this.#waiting.splice(0).length;
    this.#warn({ not_run: notRun }, 'the command of RINGNECK_ON_FAILURE still runs: it is left alone');
  }

  async #work(): Promise<void> {
    this.#busy = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) await this.#tell(next);
    this.#busy = false;
    const dropped = this.#dropped;
    if (dropped)
      this.#options.log.warn({ dropped }, 'failures came faster than the command of RINGNECK_ON_FAILURE ends: these were left out');
    this.#dropped = 0;
  }

  /** The command has begun when this returns; what goes wrong is logged. */
  async #tell(failure: Failure): Promise<void> {
    const { reason, user } = failure;
    const isWithdrawal = reason === 'consent_withdrawn';
    const warn = (trouble: object) =>
      // No other call tells of it again.
      this.#warn(
        isWithdrawal ? { reason, account: user, ...trouble } : { reason, ...trouble },
        `the command of RINGNECK_ON_FAILURE failed${isWithdrawal ? ': see to it that the study knows of this withdrawal' : ''}`,
      );
    try {
      const trouble = await this.#run(failure);
      if (trouble) warn(trouble);
    } catch (error) {
      warn({ error: messageOf(error) });
    }
  }

  /** Resolves when it ended, with what went wrong. */
  #run(failure: Failure): Promise<object | undefined> {
    const { limitMs = 60_000 } = this.#options;
    return new Promise(resolve => {
      let late = false;
      const child = spawn(this.#file, this.#parameters, {
        env: { ...this.#base, ...variablesOf(failure) },
        stdio: 'ignore',
        // A group of its own: Ctrl-C in our terminal is not for it, and with it ends what it started.
        detached: process.platform !== 'win32',
        windowsHide: true,
      });
      const limit = setTimeout(() => {
        late = true;
        kill(child.pid);
      }, limitMs);
      limit.unref();
      child.unref();
      const ended = (trouble: object | undefined) => {
        clearTimeout(limit);
        resolve(trouble);
      };
      child.once('error', error => ended({ error: messageOf(error) }));
      child.once('exit', (code, signal) => {
        if (late) ended({ error: `it did not end in ${limitMs / 1000} s and was killed` });
        else ended(code === 0 ? undefined : { code: code ?? signal });
      });
    });
  }

  /** The command's parameters are not logged: they may hold an address with a secret. */
  #warn(facts: object, message: string): void {
    this.#options.log.warn({ command: basename(this.#file), ...facts }, message);
  }

  /** Whether it was said within the hour; if not, it is now. */
  #isRepeated({ reason, user, collection, message }: Failure): boolean {
    const { now } = this.#options;
    // By one link several people may sign in: what the first one did says nothing of the next.
    const key = JSON.stringify([reason, user, collection, ...(reason === 'invitation_refused' ? [message] : [])]);
    // A clock that was put back keeps nothing from being said.
    const isRecent = (at: number) => Math.abs(now() - at) < HOUR_MS;
    if (isRecent(this.#last.get(key) ?? Number.NEGATIVE_INFINITY)) return true;
    if (this.#last.size > 1_000) for (const [old, at] of this.#last) if (!isRecent(at)) this.#last.delete(old);
    this.#last.set(key, now());
    return false;
  }
}

/** An empty value is no account, or no collection. */
function variablesOf({ reason, user = '', collection = '', message }: Failure): Record<string, string> {
  // A NUL would end the value, and Node refuses it.
  const text = message.replaceAll('\u0000', ' ').slice(0, LONGEST_MESSAGE);
  return { RINGNECK_REASON: reason, RINGNECK_USER: user, RINGNECK_COLLECTION: collection, RINGNECK_MESSAGE: text };
}

function kill(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It ended in this moment.
  }
}

/**
 * The words of a command, as a shell would part them: by blanks, but for those in single or double quotes. Nothing else has a meaning.
 * @throws UsageError where a quote is not closed
 */
export function splitWords(command: string): string[] {
  const words: string[] = [];
  for (let rest = command.trimStart(); rest; rest = rest.trimStart()) {
    const [word] = /^(?:[^\s"']|"[^"]*"|'[^']*')+/.exec(rest) ?? [];
    const end = word === undefined ? undefined : rest[word.length];
    if (word === undefined || end === '"' || end === "'") throw new UsageError('RINGNECK_ON_FAILURE has a quote that is not closed');
    words.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
    rest = rest.slice(word.length);
  }
  return words;
}
