import type { Command } from 'commander';
import { findDoor } from '../control/find-door.ts';
import { TryLaterError } from '../errors.ts';
import { formatEvent } from './event-line.ts';
import { closeAll, interruptible } from './interrupt.ts';
import { listening } from './listen.ts';
import { wholeNumber, withExample } from './options.ts';
import type { Owner } from './owner.ts';
import { printLine } from './print.ts';
import { openSession } from './session.ts';

const READY_EVERY_MS = 5_000;

export function addUp(program: Command): void {
  withExample(
    program
      .command('up')
      .description('own the data folder until stopped: follow webhooks, sweep, work off the queue; other commands work through it')
      .option('--events', 'show each event as one line')
      .option('--mirror <port>', 'serve the warehouse by the service’s own interface', wholeNumber(0, 65_535)),
    'ringneck up',
    'ringneck up --events',
    'ringneck up --mirror 4001',
  ).action(async (options: { mirror?: number; events?: true }) => {
    const { settings, log } = openSession();
    const [{ Owner }, { operationsOf }, { openDoor }, { openReceiver }, { followEvents }] = await Promise.all([
      import('./owner.ts'),
      import('./operations.ts'),
      import('../control/open-door.ts'),
      import('../receiver/receiver.ts'),
      import('./follow-events.ts'),
    ]);
    await interruptible(async signal => {
      const closing: (() => Promise<unknown>)[] = [];
      try {
        // Another `up` is told at once; a command that is about to end is waited for.
        const other = await findDoor(settings.data);
        if (other) throw new TryLaterError(`${settings.data} is owned by a running ringneck (PID ${other.pid}): end it first`);
        const owner = await Owner.open({ settings, log });
        closing.push(() => owner.close());
        const door = await openDoor({ folder: settings.data, operations: operationsOf(owner), log });
        closing.push(() => door.close());
        const pipeline = await owner.pipeline();
        const following = await followEvents(owner);
        const { host, port } = settings;
        const receiver = await listening(
          { host, port },
          'RINGNECK_PORT',
          openReceiver({ ready: readiness(owner), ...(following.webhook ? { webhook: following.webhook } : {}) }, { host, port }),
        );
        closing.push(() => receiver.close());
        owner.refusals = receiver.refusals;
        if (options.mirror !== undefined) {
          const { serveMirror } = await import('./mirror.ts');
          const address = { host, port: options.mirror };
          const mirror = await listening(address, '--mirror', serveMirror(owner, address));
          closing.push(() => mirror.close());
          log.info({ url: mirror.url }, 'the mirror is served');
        }
        const schedules = await following.start(options.events ? { onEvent: line => printLine(formatEvent(line)) } : {});
        closing.push(async () => schedules.close());
        const { kind: queue } = pipeline.queues;
        log.info(
          { url: receiver.url, data: settings.data, queue, nightly: settings.nightly, webhooks: following.webhook !== undefined },
          'up',
        );
        if (!signal.aborted) await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
        log.info('stopping');
      } finally {
        await closeAll(closing);
      }
    });
  });
}

/** Ready means that a write succeeds; asked more often, the last answer counts for a while. */
function readiness(owner: Owner): () => Promise<void> {
  let last: { at: number; answer: Promise<void> } | undefined;
  return () => {
    const now = Date.now();
    if (!last || now - last.at >= READY_EVERY_MS) {
      const row = { value: new Date(now).toISOString() };
      last = { at: now, answer: owner.warehouse.record([{ table: 'sync.meta', key: { key: 'ready_at' }, row }]) };
    }
    return last.answer;
  };
}
