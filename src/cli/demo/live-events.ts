import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../../app/app.ts';
import type { Following } from '../../app/follow-events.ts';
import { listening } from '../../app/listen.ts';
import type { WebhookSettings } from '../../base/config.ts';
import { RingneckError } from '../../base/errors.ts';
import { countRows } from '../../ledger/tombstones.ts';
import type { EventLine } from '../../sync/events/advance-event.ts';
import { formatEvent } from '../terminal/event-line.ts';
import { formatCount, printLine } from '../terminal/print.ts';

/** The people's clock: a day passes in a little more than two minutes. */
const SPEED = 600;
/** A ring syncs several times a day, and a nap is over before the next. */
const HOUR = 3_600;
const NAP_MINUTES = 30;
const WATCHED_MS = 60_000;
const PATIENCE_MS = 30_000;

export interface Announced {
  url: string;
  people: { name: string; user_id: string }[];
  client: { id: string; secret: string };
  control: { url: string; secret: string };
}

/** Where the demo's own receiver listens; its webhooks need no settings of anybody. */
export function demoWebhooks(port: number, client: Announced['client']): WebhookSettings {
  return {
    callbackUrl: `http://127.0.0.1:${port}/webhook`,
    clientId: client.id,
    clientSecret: client.secret,
    secrets: [client.secret],
    verificationToken: randomBytes(16).toString('hex'),
  };
}

/** Opens the receiver and follows events: each is shown as one line. */
export async function openDemoReceiver(
  following: Following,
  port: number,
  onEvent: (line: EventLine) => void,
): Promise<() => Promise<void>> {
  const { openReceiver } = await import('../../receiver/receiver.ts');
  const address = { host: '127.0.0.1', port };
  const webhook = following.webhook ? { webhook: following.webhook } : {};
  const receiver = await listening(address, 'another port', openReceiver({ ready: async () => undefined, ...webhook }, address));
  following.subscribe();
  const schedules = await following.start({ onEvent });
  return async () => {
    await receiver.close();
    await schedules.close();
  };
}

/** A minute of life: rings sync, events arrive, a deleted nap leaves the table. Without waiting it ends when each was shown once. */
export async function showLiveEvents(
  app: App,
  { control, people }: Pick<Announced, 'control' | 'people'>,
  watch: { wait: boolean; signal: AbortSignal; lines: EventLines },
): Promise<void> {
  const { lines, signal } = watch;
  const person = people[0]!;
  const command = <Answer = unknown>(path: string, body: object) => callControl<Answer>(control, path, body);
  const begun = Date.now();
  await command('clock', { speed: SPEED, advance: 9 * HOUR });
  const nap = await command<{ day: string; id: string }>('nap', { person: person.name, minutes: NAP_MINUTES });
  await lines.until(line => line.object_id === nap.id && line.outcome === 'stored', signal);
  printLine(`   ${person.name} has napped: ${await countNaps(app, nap.id)}`);
  await command('edit', { person: person.name, kind: 'delete-sleep', day: nap.day, id: nap.id });
  await lines.until(line => line.object_id === nap.id && line.outcome === 'removed', signal);
  printLine(`   and deleted the nap: ${await countNaps(app, nap.id)}`);
  const commands = ['create', 'update', 'delete'];
  for (const command of commands) await lines.until(line => line.event_type === command, signal);
  const rest = begun + WATCHED_MS - Date.now();
  if (watch.wait && rest > 0) await sleep(rest, undefined, { signal }).catch(() => Promise.reject(signal.reason));
  await command('clock', { speed: 0 });
  const waits = lines.shown.map(({ ms }) => ms).sort((a, b) => a - b);
  printLine(
    `   ${formatCount(waits.length)} events; half of them were in the table ${Math.round(waits[waits.length >> 1] ?? 0)} ms after they reached us`,
  );
}

async function countNaps({ warehouse }: App, id: string): Promise<string> {
  const { rows, tombstones } = await countRows(warehouse, 'sleep', id);
  return `${rows} row${rows === 1 ? '' : 's'} in sleep${tombstones ? ', and a tombstone in sync.tombstones' : ''}`;
}

async function callControl<Answer>({ url, secret }: Announced['control'], path: string, body: object): Promise<Answer> {
  const answer = await fetch(`${url}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new RingneckError(`the service's control route answers ${answer.status} to ${path}: ${await answer.text()}`);
  return JSON.parse(await answer.text());
}

/** The events as they are shown, and who waits for one of them. */
export class EventLines {
  readonly shown: EventLine[] = [];
  readonly #told = new EventEmitter();

  show(line: EventLine): void {
    this.shown.push(line);
    printLine(`   ${formatEvent(line)}`);
    this.#told.emit('line');
  }

  /** Resolves with an event, shown already or to come, that is meant. */
  async until(meant: (line: EventLine) => boolean, signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
    while (!this.shown.some(meant)) {
      await once(this.#told, 'line', { signal: limit }).catch(() => {
        throw signal.aborted ? signal.reason : new RingneckError('the event that was waited for did not arrive');
      });
    }
  }
}
