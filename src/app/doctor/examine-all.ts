import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environment, readSettings, type Settings } from '../../base/config.ts';
import { messageOf, TryLaterError } from '../../base/errors.ts';
import { createLog } from '../../base/log.ts';
import { TooLate, withinTime } from '../../base/timeout.ts';
import type { OwnerOperations } from '../commands.ts';
import { connectControl } from '../control/connect-control.ts';
import { perform } from '../perform.ts';
import { examined, type Finding, fail, ok, warn } from './finding.ts';
import { examineDisk, examineFolder } from './folder.ts';
import { examineQueue } from './queue.ts';
import { examineCallback, examineService } from './reach.ts';
import { examineSettings } from './settings.ts';
import { examineSnapshotFolder } from './snapshot.ts';

const OWNER_MS = 90_000;
const REACH_MS = 25_000;

/** Everything that `ringneck doctor` looks at, in the order in which it is shown. */
export async function examineAll(): Promise<Finding[]> {
  let settings: Settings;
  try {
    settings = readSettings(environment);
  } catch (error) {
    return [fail('settings', messageOf(error), 'correct it, then run this again: nothing else can be checked')];
  }
  const { serviceUrl, queueUrl, webhooks } = settings;
  const folder = [...examineFolder(settings.data), ...examineSnapshotFolder(settings)];
  const parts = await Promise.all([
    folder[0]!.state === 'ok' && !folder.some(({ state }) => state === 'fail') ? examineOwner(settings) : [],
    queueUrl ? examined('queue', REACH_MS, () => examineQueue(queueUrl)) : [],
    serviceUrl ? examined('service', REACH_MS, () => examineService({ ...settings, serviceUrl })) : [],
    webhooks ? examined('callback', REACH_MS, () => examineCallback(webhooks)) : [],
    examined('disk', REACH_MS, async () => examineDisk(existingFolder(settings.data))),
  ]);
  const findings = [...examineSettings(settings), ...folder, ...parts.flat()];
  return findings.toSorted((a, b) => ORDER.indexOf(a.check) - ORDER.indexOf(b.check));
}

const ORDER = [
  'settings',
  'folder',
  'owner',
  'disk',
  'clock',
  'queue',
  'service',
  'accounts',
  'days',
  'documents',
  'callback',
  'subscriptions',
  'events',
  'warehouse',
  'snapshot',
];

/** Asks the owner, or becomes it for a moment. */
async function examineOwner(settings: Settings): Promise<Finding[]> {
  const mend = 'end that process, or wait for it';
  // Warnings while the folder is opened are this command's own findings.
  const session = { settings, log: createLog({ level: 'silent', pretty: false }) };
  try {
    const control = await connectControl<OwnerOperations>(settings.data);
    const owner = ownerFinding(settings, control?.pid);
    if (!control && !existsSync(join(settings.data, 'warehouse.duckdb'))) {
      return [owner, warn('warehouse', 'there is none yet', 'ringneck account add NAME, then ringneck backfill')];
    }
    const found = await withinTime(control ? control.call('examine', {}) : perform(session, 'examine', {}), OWNER_MS);
    return [owner, ...found];
  } catch (error) {
    const again = error instanceof TryLaterError ? mend : 'see the message';
    return [fail('owner', error instanceof TooLate ? `the owner of ${settings.data} gives ${error.message}` : messageOf(error), again)];
  }
}

function ownerFinding({ data, webhooks }: Settings, pid: number | undefined): Finding {
  if (pid !== undefined) return ok('owner', `${data} is owned by a running ringneck (PID ${pid})`);
  if (!webhooks) return ok('owner', 'nobody has the folder now');
  return warn('owner', 'no `ringneck up` is running: no event is taken', 'start ringneck up');
}

/** The folder itself, or the next one above it that there is. */
function existingFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingFolder(dirname(path));
}
