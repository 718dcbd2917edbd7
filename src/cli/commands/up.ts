import type { Command } from 'commander';
import type { App } from '../../app/app.ts';
import { connectControl } from '../../app/control/connect-control.ts';
import type { ErasingWait } from '../../app/erase/when-erased.ts';
import type { Following } from '../../app/follow-events.ts';
import { listening } from '../../app/listen.ts';
import { messageOf, TryLaterError } from '../../base/errors.ts';
import { closeAll, interruptible } from '../../base/interrupt.ts';
import type { Log } from '../../base/log.ts';
import type { WebhookOptions } from '../../receiver/webhook.ts';
import { wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { formatEvent } from '../terminal/event-line.ts';
import { printLine } from '../terminal/print.ts';

const READY_EVERY_MS = 5_000;
/** Before an erasing that waits for Redis is tried again. */
const FIRST_PAUSE_MS = 250;

export function addUp(program: Command): void {
  withExample(
    program
      .command('up')
      .description('run until stopped: receive webhooks, sweep, run the nightly schedule; other commands connect to it')
      .option('--events', 'show each event as one line')
      .option('--mirror <port>', 'serve the warehouse by the service’s own interface', wholeNumber(0, 65_535)),
    'ringneck up',
    'ringneck up --events',
    'ringneck up --mirror 4001',
  ).action(async (options: { mirror?: number; events?: true }) => {
    const session = await openSession();
    const { settings, log } = session;
    const [
      { openDataFolder },
      { NO_WEBHOOKS },
      { serveControl },
      { openReceiver },
      { followEvents },
      { keepUpToDate },
      { keepFileCompact },
      { whenQueueOpens },
      { whenErased },
    ] = await Promise.all([
      import('../../app/data-folder.ts'),
      import('../../app/app.ts'),
      import('../../app/control/serve-control.ts'),
      import('../../receiver/receiver.ts'),
      import('../../app/follow-events.ts'),
      import('../../app/snapshot/schedule.ts'),
      import('../../app/compaction/schedule.ts'),
      import('../../app/when-queue-opens.ts'),
      import('../../app/erase/when-erased.ts'),
    ]);
    if (options.events && !settings.webhooks) log.warn(`--events has nothing to show: ${NO_WEBHOOKS}`);
    await interruptible(async signal => {
      const closing: (() => Promise<unknown>)[] = [];
      try {
        // Another `up` is told at once; a command that is about to end is waited for.
        const other = await connectControl(settings.data);
        if (other) throw new TryLaterError(`${settings.data} is owned by a running ringneck (PID ${other.pid}): end it first`);
        const folder = await openDataFolder({ ...session, acceptsWhileErasing: true });
        closing.push(() => folder.close());
        const control = await serveControl({ folder: settings.data, commands: folder.commands, log });
        closing.push(() => control.close());
        closing.push(() => folder.end());
        let following: Following | undefined;
        await folder.during(async app => {
          following = await followEvents(app);
          return () => {
            following = undefined;
          };
        });
        const { host, port } = settings;
        const webhook = webhookOf(() => following);
        const receiver = await listening(
          { host, port },
          'RINGNECK_PORT',
          openReceiver({ ready: readiness(() => folder.app, log), ...(webhook ? { webhook } : {}) }, { host, port }),
        );
        closing.push(() => receiver.close());
        await folder.during(async app => {
          app.refusals = receiver.refusals;
          return () => undefined;
        });
        if (options.mirror !== undefined) {
          const { serveMirror } = await import('../../app/mirror.ts');
          const address = { host, port: options.mirror };
          await folder.during(async app => {
            if (app.erasing) return () => undefined;
            const mirror = await listening(address, '--mirror', serveMirror(app, address));
            // The same place again, also when any free one was asked for.
            address.port = Number(new URL(mirror.url).port);
            log.info({ url: mirror.url }, 'the mirror is served');
            return () => mirror.close();
          });
        }
        let fail: (error: unknown) => void = () => undefined;
        const failed = new Promise<never>((_, reject) => {
          fail = reject;
        });
        failed.catch(() => undefined);
        const newWait = (): ErasingWait => ({ ms: FIRST_PAUSE_MS, said: false });
        let wait = newWait();
        await folder.during(async app => {
          following!.subscribe();
          if (app.erasing) return whenErased(app, wait);
          wait = newWait();
          const begin = async () => {
            const schedules = await following!.start(options.events ? { onEvent: line => printLine(formatEvent(line)) } : {});
            const kept = await keepUpToDate(app);
            const compact = await keepFileCompact(app);
            return () => closeAll([() => schedules.close(), () => kept.close(), () => compact.close()]);
          };
          return whenQueueOpens(app, begin, fail);
        });
        const queue = settings.queueUrl ? 'redis' : 'embedded';
        log.info({ url: receiver.url, data: settings.data, queue, nightly: settings.nightly, webhooks: webhook !== undefined }, 'up');
        const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
        if (!signal.aborted) await Promise.race([stopped, folder.broken, failed]);
        log.info('stopping');
      } finally {
        await closeAll(closing);
      }
    });
  });
}

/** What the receiver does with events; while the folder is closed for a while none is accepted, and each is sent again. */
export function webhookOf(find: () => Following | undefined): WebhookOptions | undefined {
  const first = find()?.webhook;
  return (
    first && {
      ...first,
      accept: async event => {
        const webhook = find()?.webhook;
        if (!webhook) throw new TryLaterError('an account is being erased');
        return webhook.accept(event);
      },
      isGone: event => find()?.webhook?.isGone?.(event) ?? false,
      noteGone: event => find()?.webhook?.noteGone?.(event),
    }
  );
}

/** Ready means that a write succeeds; asked more often, the last answer counts for a while. */
function readiness(find: () => App, log: Log): () => Promise<void> {
  let last: { at: number; answer: Promise<void> } | undefined;
  return async () => {
    const now = Date.now();
    const app = find();
    if (!last || now - last.at >= READY_EVERY_MS) {
      const row = { value: new Date(now).toISOString() };
      last = { at: now, answer: app.warehouse.record([{ table: 'sync.meta', key: { key: 'ready_at' }, row }]) };
      // Whoever asks may be anybody, and is not told of our files.
      last.answer.catch(error => log.warn({ reason: messageOf(error) }, 'nothing can be written: /ready says so'));
    }
    return last.answer;
  };
}
