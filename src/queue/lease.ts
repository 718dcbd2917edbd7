import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { messageOf, TryLaterError } from '../base/errors.ts';
import { identityOfFolder } from '../base/folder-identity.ts';
import { withTimeout } from '../base/timeout.ts';
import { isPassing } from './environment-errors.ts';

/** What the queues of a Redis are worked off for. */
export interface Claim {
  /** The id of the warehouse. */
  warehouse: string;
  /** The data folder, which this process owns: whoever held the lease for the same folder is dead. */
  folder: string;
  /** Of a warehouse whose owner is known otherwise: whoever comes with the same word takes the queues at once. */
  place?: string | undefined;
  /** Whether it may work on a job: one that it is given while it may not stays with the queue. */
  mayWork?: (() => boolean) | undefined;
  /** Somebody else has the queues: nothing of them may be touched any more. */
  onLost(message: string): void;
}

const TTL_MS = 15_000;
const RENEW_MS = 2_000;
/** Whoever holds it has written it again by then, if it was lost with all that a Redis held. */
const MISSED_MS = 6_000;
const LOOK_MS = 500;
const ANSWER_MS = 3_000;

const TAKEN = -10;
const GONE = -20;
const FORMER = 2;
/**
 * Takes what was given back, is ours, or of the same folder, and when told so what is gone; else says for how long it is still held.
 */
const TAKE = `local held = redis.call('GET', KEYS[1])
local place = '\\n' .. ARGV[2]
if not held and ARGV[4] ~= 'also gone' then return ${GONE} end
if held and held ~= 'free' and held:sub(-#place) ~= place then return redis.call('PTTL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1] .. place, 'PX', ARGV[3])
return ${TAKEN}`;
/** Keeps what is ours or was lost, and when told so takes what is of the same folder; 0: somebody else has it. */
const RENEW = `local held = redis.call('GET', KEYS[1])
local place = '\\n' .. ARGV[2]
local mine = ARGV[1] .. place
local isFormer = held and held ~= mine and held:sub(-#place) == place
if held and held ~= 'free' and held ~= mine and not (isFormer and ARGV[4] == 'also former') then return 0 end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
return isFormer and ${FORMER} or 1`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] .. '\\n' .. ARGV[2] then redis.call('SET', KEYS[1], 'free', 'PX', ARGV[3]) end
return 1`;

const COPY =
  'another ringneck works off the queues of this warehouse; if this data folder is a copy, `ringneck adopt` gives it an id of its own';

/**
 * Makes this process the only one that works off the queues of a warehouse, until it is given back. A holder who died elsewhere is waited
 * for, one who is alive is not; where the Redis is emptied meanwhile, whoever held it keeps it.
 * @throws TryLaterError naming `ringneck adopt`
 * @returns gives it back
 */
export async function takeLease(
  redis: Redis,
  prefix: string,
  { warehouse, folder, place: word, onLost }: Claim,
): Promise<() => Promise<void>> {
  const place = word ?? identityOfFolder(folder);
  const key = `${prefix}:lease-${warehouse}`;
  const values = [randomUUID(), place, String(TTL_MS)];
  const run = async (script: string, ...more: string[]) =>
    (await withTimeout(redis.eval(script, 1, key, ...values, ...more), ANSWER_MS)) as number;
  try {
    /** Until when what was seen is held, at the latest; what is gone before was lost, and its holder may be alive. */
    let heldUntil = 0;
    let goneSince: number | undefined;
    for (let before = Number.POSITIVE_INFINITY; ; ) {
      const now = performance.now();
      const isOver = goneSince === undefined ? now >= heldUntil : now - goneSince >= MISSED_MS;
      const leftMs = await run(TAKE, ...(isOver ? ['also gone'] : []));
      if (leftMs === TAKEN) break;
      if (leftMs === GONE) goneSince ??= now;
      // It was renewed meanwhile, or written again.
      else if (leftMs > before || goneSince !== undefined) throw new TryLaterError(COPY);
      else {
        before = leftMs;
        heldUntil = now + leftMs;
      }
      await sleep(LOOK_MS);
    }
  } catch (error) {
    if (isPassing(error)) throw new TryLaterError(`the queue cannot be used yet: ${messageOf(error)}`, { cause: error });
    throw error;
  }
  // A Redis that was restored from an older dump has that of a process before this one. Whoever comes back for theirs is alive.
  let mayBeFormer = word === undefined;
  const timer = setInterval(() => {
    run(RENEW, ...(mayBeFormer ? ['also former'] : [])).then(
      kept => {
        mayBeFormer = word === undefined && kept !== FORMER;
        if (kept) return;
        clearInterval(timer);
        onLost(COPY);
      },
      // A Redis that is away or takes nothing: the next time tells.
      () => undefined,
    );
  }, RENEW_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await run(RELEASE).catch(() => undefined);
  };
}
