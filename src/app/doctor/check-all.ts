import { existsSync } from 'node:fs';
import { environment, readSettings, type Settings } from '../../base/config.ts';
import { messageOf, TryLaterError } from '../../base/errors.ts';
import { existingFolder } from '../../base/files.ts';
import { createLog } from '../../base/log.ts';
import { accessCommand } from '../../base/sign-in-again.ts';
import { TimeoutError, withTimeout } from '../../base/timeout.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { call } from '../call.ts';
import type { AppCommands } from '../commands.ts';
import { connectControl } from '../control/connect-control.ts';
import { storageFolders } from '../lake/place.ts';
import { type CheckResult, fail, ok, runCheck, warn } from './check-result.ts';
import { checkDisk, checkFolder, checkInbox } from './folder.ts';
import { checkQueue } from './queue.ts';
import { checkCallback, checkInvitations, checkService } from './service.ts';
import { checkSettings } from './settings.ts';
import { checkSnapshotFolder } from './snapshot.ts';

const OWNER_MS = 90_000;
const REACH_MS = 25_000;

/** Everything that `ringneck doctor` looks at, in the order in which it is shown. */
export async function checkAll(): Promise<CheckResult[]> {
  let settings: Settings;
  try {
    settings = readSettings(environment);
  } catch (error) {
    return [fail('settings', messageOf(error), 'correct it, then run this again: nothing else can be checked')];
  }
  const { serviceUrl, queueUrl, webhooks, enrolment } = settings;
  const folder = [...checkFolder(settings.data), ...checkSnapshotFolder(settings)];
  const parts = await Promise.all([
    folder[0]?.state === 'ok' && !folder.some(({ state }) => state === 'fail') ? checkOwned(settings) : [],
    queueUrl ? runCheck('queue', REACH_MS, () => checkQueue(queueUrl)) : [],
    serviceUrl ? runCheck('service', REACH_MS, () => checkService({ ...settings, serviceUrl })) : [],
    webhooks ? runCheck('callback', REACH_MS, () => checkCallback(webhooks)) : [],
    enrolment ? runCheck('invitations', REACH_MS, () => checkInvitations(enrolment)) : [],
    runCheck('disk', REACH_MS, async () => storageFolders(settings).flatMap((folder, n) => checkDisk(existingFolder(folder), n > 0))),
    runCheck('inbox', REACH_MS, async () => checkInbox(settings.data)),
  ]);
  const results = [...checkSettings(settings), ...folder, ...parts.flat()];
  return results.toSorted((a, b) => ORDER.indexOf(a.check) - ORDER.indexOf(b.check));
}

const ORDER = [
  'settings',
  'folder',
  'owner',
  'disk',
  'inbox',
  'clock',
  'queue',
  'service',
  'accounts',
  'sign-ins',
  'days',
  'documents',
  'callback',
  'subscriptions',
  'events',
  'invitations',
  'warehouse',
  'snapshot',
];

/** Asks the owner, or becomes it for a moment. */
async function checkOwned(settings: Settings): Promise<CheckResult[]> {
  const fix = 'end that process, or wait for it';
  // Warnings while the folder is opened are this command's own results.
  const session = { settings, log: createLog({ level: 'silent', pretty: false }) };
  try {
    const control = await connectControl<AppCommands>(settings.data);
    const app = ownerResult(settings, control?.pid);
    if (!control && !existsSync(warehouseIn(settings.data))) {
      return [app, warn('warehouse', 'there is none yet', `${accessCommand('NAME', settings)}, then ringneck backfill --last 30`)];
    }
    const found = await withTimeout(control ? control.call('check', {}) : call(session, 'check', {}), OWNER_MS);
    return [app, ...found];
  } catch (error) {
    const again = error instanceof TryLaterError ? fix : 'see the message';
    return [
      fail('owner', error instanceof TimeoutError ? `the owner of ${settings.data} gives ${error.message}` : messageOf(error), again),
    ];
  }
}

function ownerResult({ data, webhooks }: Settings, pid: number | undefined): CheckResult {
  if (pid !== undefined) return ok('owner', `${data} is owned by a running ringneck (PID ${pid})`);
  if (!webhooks) return ok('owner', 'nobody has the folder now');
  return warn('owner', 'no `ringneck up` is running: no event is taken', 'start ringneck up');
}
