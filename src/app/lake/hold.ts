import { spawn } from 'node:child_process';
import { type CommonStore, setCommonStore } from '../../base/common-files.ts';
import { environment } from '../../base/config.ts';
import { messageOf, TryLaterError, UsageError } from '../../base/errors.ts';
import { ensureFolder } from '../../base/files.ts';
import type { Catalogue } from '../../machines/catalogue.ts';
import type { CommonFiles } from '../../machines/files.ts';
import type { Holder, Lease } from '../../machines/lease.ts';
import type { AppOptions } from '../app-options.ts';
import { lakeOf, noteLake, noteRewritten, placeOf, REWRITTEN, readNoted } from './place.ts';

/** What this process has of the lake of a data folder. */
export interface Held {
  catalogue: Catalogue;
  lease: Lease;
  files: CommonFiles;
}

type HoldOptions = Pick<AppOptions, 'settings' | 'log' | 'leaseTimes' | 'onLakeLost'>;

export interface HoldWait {
  signal: AbortSignal;
  /** Told who works on the lake, as often as it is looked. */
  onHeld(holder: Holder): void | Promise<void>;
  /** Ends what goes on meanwhile, once the lake is ours: before anything is done with the files of the folder. */
  onTaken(): Promise<void>;
}

/** Whoever holds the lake has its queues: nobody waits until a dead machine no longer claims them. */
export const QUEUES_OF_LAKE = 'lake';

const holds = new Map<string, { count: number; taken: Promise<Held | undefined> }>();

export const tellHolder = ({ host, pid, since }: Holder): string => `${host} works on the lake since ${since} UTC (PID ${pid} there)`;

/**
 * Has no other machine work on the lake of a data folder until what this gives is called, and everything that holds it: it may be held by
 * several at once. Of a file it does nothing.
 * @param wait how another machine is waited for; without it that one is told
 * @returns undefined where the signal came first
 * @throws TryLaterError naming who works on it
 */
export async function holdLake(options: HoldOptions, wait?: HoldWait): Promise<(() => Promise<void>) | undefined> {
  const { data, warehouse } = options.settings;
  if (!warehouse) return async () => undefined;
  const hold = holds.get(data) ?? { count: 0, taken: take(options, wait) };
  holds.set(data, hold);
  hold.count++;
  let isOver = false;
  const release = async () => {
    if (isOver) return;
    isOver = true;
    if (--hold.count > 0) return;
    holds.delete(data);
    const held = await hold.taken.catch(() => undefined);
    held?.files.close();
    await held?.lease.giveBack();
    await held?.catalogue.close();
  };
  try {
    if (await hold.taken) return release;
    await release();
    return undefined;
  } catch (error) {
    await release();
    throw error;
  }
}

/** What this process has of the lake of a data folder while it holds it; undefined of a file. */
export const findHeld = async (data: string): Promise<Held | undefined> => holds.get(data)?.taken;

/**
 * Asks whether the lake of a data folder is still ours, where it has one: a machine that was frozen learns it before it does what cannot be
 * taken back.
 * @throws TryLaterError where it is not, or where nobody answers
 */
export async function ensureHeld(data: string): Promise<void> {
  await (await findHeld(data))?.lease.ensure();
}

/** Has Postgres write the common files anew: those of before stay among its bytes. */
export async function forgetCommonFiles(data: string): Promise<void> {
  const held = await findHeld(data);
  if (held) await (await import('../../machines/files.ts')).rewriteCommonFiles(held.catalogue);
}

async function take(options: HoldOptions, wait: HoldWait | undefined): Promise<Held | undefined> {
  const { settings, log, leaseTimes: times, onLakeLost } = options;
  const { data } = settings;
  const [{ Lease }, { CommonFiles }] = await Promise.all([import('../../machines/lease.ts'), import('../../machines/files.ts')]);
  ensureFolder(data);
  // Where it lies elsewhere, this says so first.
  if (!readNoted(data)) lakeOf(settings);
  const catalogue = await openCatalogue(options);
  try {
    await ensureMayJoin(options, catalogue);
    const onLost = (message: string) => {
      log.fatal(message);
      // Nothing more is stored; whoever supervises this process starts it again, to wait in its turn.
      if (onLakeLost) return onLakeLost(message);
      killLater();
      process.exit(75);
    };
    const onHeld = (holder: Holder) => {
      throw new TryLaterError(`${tellHolder(holder)}: say it there, or end that ringneck first`);
    };
    let hasWaited = false;
    const waiting = wait && {
      signal: wait.signal,
      onHeld: async (holder: Holder) => {
        // With another key it would take over what it cannot read.
        if (!hasWaited) await ensureSameKey(options, catalogue);
        hasWaited = true;
        await wait.onHeld(holder);
      },
    };
    const lease = await Lease.take({ catalogue, folder: data, times, onLost }, waiting ?? { onHeld });
    if (lease) {
      const files = new CommonFiles(catalogue.place, lease.token, () => lease.lose());
      try {
        await wait?.onTaken();
        // When it began to wait nothing may have been sealed.
        if (hasWaited) await ensureSameKey(options, catalogue);
        const { followRewritten } = await import('./follow-rewritten.ts');
        await followRewritten(options, catalogue, async () => undefined).catch(error =>
          log.error(
            { reason: messageOf(error) },
            'what this machine has of who was erased or moved could not be removed: it is tried again',
          ),
        );
        await joinMachines({ settings, catalogue, files });
        return { catalogue, lease, files };
      } catch (error) {
        files.close();
        await lease.giveBack();
        throw error;
      }
    }
  } catch (error) {
    await catalogue.close();
    throw error;
  }
  await catalogue.close();
  return undefined;
}

const ENDS_WITHIN_MS = 5_000;

/** Ending waits for threads, and one that waits for a Postgres which is cut off does so for ever. */
function killLater(): void {
  const kill = `setTimeout(() => process.ppid === ${process.pid} && process.kill(${process.pid}, 'SIGKILL'), ${ENDS_WITHIN_MS})`;
  spawn(process.execPath, ['-e', kill], { detached: true, stdio: 'ignore' }).unref();
}

/** @throws UsageError where a folder that has never worked on the lake could not go on with what the others have */
async function ensureMayJoin({ settings }: Pick<AppOptions, 'settings'>, catalogue: Catalogue): Promise<void> {
  const { data, secretKey } = settings;
  if (readNoted(data)?.joined) return;
  const [{ listDiffering, readCommonFiles }, { findHolder }] = await Promise.all([
    import('../../machines/files.ts'),
    import('../../machines/lease.ts'),
  ]);
  const common = await readCommonFiles(catalogue);
  const [other] = listDiffering(data, common);
  if (other) {
    throw new UsageError(
      `${data} has a file ${other} of its own, and the machines of the lake have another: begin in an empty folder, or move the file away`,
    );
  }
  if (secretKey === undefined && (common.size > 0 || (await findHolder(catalogue)))) {
    throw new UsageError(
      'other machines work on this lake too, whose tokens are sealed: set RINGNECK_SECRET_KEY to the text that is set there, or that their secret.key holds',
    );
  }
}

/** @throws UsageError where this machine has another key than what the machine that works, or worked last, has sealed */
async function ensureSameKey({ settings }: Pick<AppOptions, 'settings'>, catalogue: Catalogue): Promise<void> {
  const [{ readCommonFiles }, { isOpenedBy }, { findSecretKey }] = await Promise.all([
    import('../../machines/files.ts'),
    import('../../base/secrets/sealed-file.ts'),
    import('../../base/secrets/secret-key.ts'),
  ]);
  const sealed = (await readCommonFiles(catalogue)).get('accounts.secret');
  const key = findSecretKey(settings.data, settings.secretKey);
  if (!sealed || (key !== undefined && isOpenedBy(sealed, key) !== false)) return;
  throw new UsageError(
    'the tokens of the lake’s accounts are sealed with another key than this machine has: ' +
      'set RINGNECK_SECRET_KEY to the text that is set on the other machines, or that their secret.key holds',
  );
}

/** From here on the common files are those of the catalogue, and are written there first. */
async function joinMachines({
  settings,
  catalogue,
  files,
}: Pick<AppOptions, 'settings'> & Pick<Held, 'catalogue' | 'files'>): Promise<void> {
  const { data } = settings;
  const { pullCommonFiles, pushCommonFiles, readCommonFiles } = await import('../../machines/files.ts');
  const noted = readNoted(data);
  const common = await readCommonFiles(catalogue);
  if (!noted?.joined) pushCommonFiles(data, common, files);
  pullCommonFiles(data, common);
  if (noted && !noted.joined) noteLake(data, placeOf(settings)!, { ...noted, joined: true });
  const store: CommonStore = {
    write: (name, content) => files.write(name, content),
    remove: name => {
      const mark = files.remove(name);
      const rewritten = REWRITTEN.find(file => file === name);
      if (rewritten) noteRewritten(settings, rewritten, mark);
    },
  };
  files.whenClosed(setCommonStore(data, store));
}

/**
 * Opens the catalogue of a lake, of which the settings say where it is.
 * @throws TryLaterError where it cannot be reached
 */
export async function openCatalogue({ settings }: Pick<AppOptions, 'settings'>): Promise<Catalogue> {
  const { Catalogue } = await import('../../machines/catalogue.ts');
  const { address, password } = placeOf(settings)!;
  const { PGHOST: host, PGSSLMODE: mode, PGSSLROOTCERT: root } = environment;
  return Catalogue.open({ address, password, host, tls: { mode, root } });
}
