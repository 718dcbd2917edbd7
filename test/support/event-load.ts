import { setTimeout as sleep } from 'node:timers/promises';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { signed } from '../receiver/signed.ts';
import type { Changing, ChangingService } from './changing-documents.ts';
import type { Random } from './random-documents.ts';

const EVERY_MS = 50;
/** A retry is signed anew: its timestamp is another second. */
const RETRY_MS = 2_000;

export interface Sent {
  event: WebhookEvent;
  changed: Changing;
  /** The document's version that it speaks of. */
  version: number;
  /** When the first request was sent that was answered 2xx. */
  acknowledgedAt?: number;
}

/** Changes documents and tells of each change. What is not answered 2xx is told again, or never. */
export function startLoad(
  service: ChangingService,
  { url, secret, random, perSecond }: { url: string; secret: string; random: Random; perSecond: number },
): {
  /** Changes nothing more, and waits until all is told that is told again. */
  stop(): Promise<Sent[]>;
} {
  const sent: Sent[] = [];
  const underWay = new Set<Promise<void>>();
  let stopped = false;

  async function post(one: Sent): Promise<boolean> {
    const at = Date.now();
    const { timestamp, signature, body } = signed(JSON.stringify(one.event), String(Math.floor(at / 1000)), secret);
    const headers = { 'content-type': 'application/json', 'x-service-timestamp': timestamp, 'x-service-signature': signature };
    const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
    await answer?.arrayBuffer().catch(() => undefined);
    if (answer?.ok) one.acknowledgedAt ??= at;
    return answer?.ok ?? false;
  }

  async function tell(one: Sent, again: boolean, twice: boolean): Promise<void> {
    if (twice) await post(one);
    while (!(await post(one)) && again) await sleep(RETRY_MS);
  }

  async function goOn(): Promise<void> {
    while (!stopped) {
      for (let i = 0; i < (perSecond * EVERY_MS) / 1_000; i++) {
        const { changed, event } = service.change(random);
        const one: Sent = { event, changed, version: changed.version };
        sent.push(one);
        const telling = tell(one, random() < 0.5, random() < 0.1).finally(() => underWay.delete(telling));
        underWay.add(telling);
      }
      await sleep(EVERY_MS);
    }
  }

  const going = goOn();
  return {
    async stop() {
      stopped = true;
      await going;
      await Promise.all(underWay);
      return sent;
    },
  };
}
