import { setTimeout as sleep } from 'node:timers/promises';
import { unlessRefused } from '../base/errors.ts';
import { BELIEVED_MS, createServiceClock, isOneTime, type ServiceClock } from '../client/service-clock.ts';
import { listAccounts } from '../ledger/accounts.ts';
import { factEntry, readFact } from '../ledger/meta.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { Pipeline } from './pipeline.ts';
import { isRefusal } from './verdicts/probe.ts';

/** Each answer would be a commit where a clock runs otherwise than ours: what is learned is written this often at most, and this near. */
const WRITE_EVERY_MS = 10_000;
const NEAR_MS = 60_000;
/** Where nobody was reached for so long the time is not asked for any more: whoever asks next waits, and says so. */
const UNREACHED_MS = 8_000;
const LOOK_MS = 500;
const MARGIN_MS = 100;

/** As the ledger has it; of another service it says nothing. */
interface Written {
  service: string;
  aheadMs: number;
}

/** The clock of the service, which the next process will know too. */
export interface KeptServiceClock extends ServiceClock {
  /** Writes what is not written yet; never throws. */
  save(): Promise<void>;
}

/** The clock of the service: as it was heard of last, in this process or an earlier one. */
export async function openServiceClock(
  warehouse: Warehouse,
  service: string,
  now: () => number,
  onError: (error: unknown) => void,
): Promise<KeptServiceClock> {
  const fact = await readFact(warehouse, 'service_clock');
  const last: Written | undefined = fact && JSON.parse(fact);
  let written = last?.service === service ? last.aheadMs : undefined;
  let writtenMs = Number.NEGATIVE_INFINITY;
  const clock = createServiceClock(now, written, aheadMs => {
    const isOther = written === undefined || !isOneTime(aheadMs - written);
    if (isOther || Math.abs(now() - writtenMs) >= WRITE_EVERY_MS) void save();
  });
  async function save(): Promise<void> {
    const { aheadMs } = clock;
    if (aheadMs === undefined || (written !== undefined && Math.abs(aheadMs - written) <= NEAR_MS)) return;
    written = aheadMs;
    writtenMs = now();
    const value = JSON.stringify({ service, aheadMs } satisfies Written);
    await warehouse.record([factEntry('service_clock', value)]).catch(onError);
  }
  return Object.assign(clock, { save });
}

/**
 * The service's clock, asked with a request of an account where its time is not known, or no longer, and with a second one where it is of
 * another time. A service that does not answer leaves it at what is known, and so does one whose answers go on to differ: they are waited
 * for once.
 * @param signal ends the asking, which throws its reason
 * @param wait as long as a second answer has to be later
 */
export async function askServiceClock(
  { serviceClock, client, warehouse, tokens }: Pick<Pipeline, 'serviceClock' | 'client' | 'warehouse' | 'tokens'>,
  signal?: AbortSignal,
  wait: (ms: number, signal: AbortSignal) => Promise<unknown> = (ms, signal) => sleep(ms, undefined, { signal }),
): Promise<ServiceClock> {
  if (!serviceClock.isStale()) return serviceClock;
  const ending = new AbortController();
  const timer = setInterval(() => {
    const silence = client.findSilence();
    if (silence && !silence.mayEnd && silence.ms >= UNREACHED_MS) ending.abort();
  }, LOOK_MS);
  try {
    await askAccounts(signal ? AbortSignal.any([signal, ending.signal]) : ending.signal);
  } finally {
    clearInterval(timer);
  }
  signal?.throwIfAborted();
  return serviceClock;

  async function askAccounts(signal: AbortSignal): Promise<void> {
    let waited = false;
    for (const { userId, state } of await listAccounts(warehouse)) {
      // One that cannot be read concerns its own account alone.
      const token = state === 'active' ? unlessRefused(() => tokens.find(userId)) : undefined;
      if (!token) continue;
      for (const nth of ['first', 'second']) {
        // A command that ends sooner would never believe the second one, nor the next command.
        if (nth === 'second' && serviceClock.aheadMs !== undefined) {
          if (waited) return;
          waited = true;
          await wait(BELIEVED_MS + MARGIN_MS, signal).catch(() => undefined);
          if (signal.aborted) return;
        }
        try {
          await client.probe(token, signal);
        } catch (error) {
          // A refusal shows the clock too. What is in the way of one request is in the way of the next, and whoever asks next says so.
          if (!isRefusal(error)) return;
        }
        if (!serviceClock.isStale()) return;
      }
    }
  }
}
