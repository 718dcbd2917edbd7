import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { messageOf, TryLaterError } from '../base/errors.ts';
import { withTimeout } from '../base/timeout.ts';
import { isPassing } from './environment-errors.ts';

/** What the queues of a Redis are worked off for. */
export interface Claim {
  /** The id of the warehouse. */
  warehouse: string;
  /** The data folder, which this process owns: whoever held the lease for the same folder is dead. */
  folder: string;
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
/**
 * Takes what was given back, is ours, or of the same folder, and when told so what is gone; else says for how long it is still held.
 */
const TAKE = `local held = redis.call('GET', KEYS[1])
local place = '\\n' .. ARGV[2]
if not held and ARGV[4] ~= 'also gone' then return ${GONE} end
if held and held ~= 'free' and held:sub(-#place) ~= place then return redis.call('PTTL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1] .. place, 'PX', ARGV[3])
return ${TAKEN}`;
/** Keeps what is ours or was lost; 0: somebody else has it. */
const RENEW = `local held = redis.call('GET', KEYS[1])
local mine = ARGV[1] .. '\\n' .. ARGV[2]
if held and held ~= 'free' and held ~= mine then return 0 end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
return 1`;
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
export async function takeLease(redis: Redis, prefix: string, { warehouse, folder, onLost }: Claim): Promise<() => Promise<void>> {
  const key = `${prefix}:lease-${warehouse}`;
  const values = [randomUUID(), placeOf(folder), String(TTL_MS)];
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
  const timer = setInterval(() => {
    run(RENEW).then(
      kept => {
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

/** Host, device and inode: two folders never share them, and a folder keeps them when it is opened again. */
function placeOf(folder: string): string {
  const { dev, ino } = statSync(folder);
  return `${hostOf()} ${dev}:${ino}`;
}

/** A machine that was cloned has the name of the other; what counts its starts differs. */
function hostOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return hostname();
  }
}
