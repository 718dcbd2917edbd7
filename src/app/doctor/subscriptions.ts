import { dataTypesOf } from '../../../schema/resource.ts';
import { RingneckError, shownMessageOf, TryLaterError, withDetail } from '../../base/errors.ts';
import { groupBy, listShort } from '../../base/items.ts';
import { printable } from '../../base/printable.ts';
import { withTimeout } from '../../base/timeout.ts';
import { keyOf, kindsOf, readDesired } from '../../ledger/subscriptions.ts';
import { mapCommand } from '../../sync/events/map-command.ts';
import { listUnknownPersons } from '../../sync/events/unknown-person.ts';
import type { SubscriptionManager } from '../../sync/subscriptions/subscription-manager.ts';
import { reportSubscriptions, type SubscriptionReport } from '../../sync/webhook-status.ts';
import type { App } from '../app.ts';
import { type CheckResult, fail, notTried, ok, SEE_SERVICE, warn } from './check-result.ts';
import { findSilence } from './service.ts';

const ANSWER_MS = 20_000;
const SHOWN = 5;

/** Whether events wait of somebody whom no account is known to be. */
export async function checkUnknownPersons({ warehouse }: Pick<App, 'warehouse'>): Promise<CheckResult[]> {
  const unknown = await listUnknownPersons(warehouse);
  const results = unknown
    .slice(0, SHOWN)
    .map(({ service_user_id: id, events }) =>
      warn('events', `${events} of ${printable(id)} wait: no account is known to be that person`, mapCommand(id)),
    );
  if (unknown.length > SHOWN)
    results.push(warn('events', `those of ${unknown.length - SHOWN} others wait too`, 'ringneck status --json names them'));
  return results;
}

/** Whether the service has every subscription that there is to be. */
export async function checkSubscriptions(app: App): Promise<CheckResult[]> {
  if (!app.settings.webhooks || !app.settings.serviceUrl) return [];
  const { desired, problem } = await readDesired(app.warehouse);
  if (desired !== 'ensured') {
    return [warn('subscriptions', 'they were removed by command and are not made again', 'ringneck subscriptions ensure')];
  }
  const silence = await findSilence(app.settings.serviceUrl);
  if (silence !== undefined) return [notTried('subscriptions', silence)];
  const manager = await app.manager();
  let list: Awaited<ReturnType<SubscriptionManager['list']>>;
  try {
    list = await withTimeout(manager.list(), ANSWER_MS);
  } catch (error) {
    const saysHow = error instanceof RingneckError && !(error instanceof TryLaterError);
    return [fail('subscriptions', shownMessageOf(error), saysHow ? 'do what it says' : SEE_SERVICE)];
  }
  const { remote, rows } = list;
  const reports = new Map<string, SubscriptionReport>();
  for (const report of reportSubscriptions(rows, remote)) reports.set(`${report.event_type} ${report.data_type}`, report);
  const kinds = kindsOf(dataTypesOf(app.warehouse.resources)).map(keyOf);
  const missing = kinds.filter(kind => {
    const report = reports.get(kind);
    return report?.state !== 'not_offered' && (report?.state !== 'active' || report.at_service === false);
  });
  const notOffered = kinds.filter(kind => reports.get(kind)?.state === 'not_offered');
  const results: CheckResult[] = [];
  if (missing.length) {
    const reasonOf = (kind: string) => problem ?? reports.get(kind)?.reason ?? 'they were never made, or were lost';
    results.push(...tellMissing(missing, kinds.length, reasonOf, manager.said));
  } else
    results.push(
      ok(
        'subscriptions',
        `all ${kinds.length - notOffered.length} are ${remote ? 'at the service' : 'active; the service offers no list to compare with'}`,
      ),
    );
  if (notOffered.length) {
    results.push(ok('subscriptions', `${notOffered.length} the service does not offer: their changes are found by sweeps`));
  }
  return results;
}

/** Those that are missing for one reason together, with what the service itself has said of one of them. */
function tellMissing(
  missing: readonly string[],
  wanted: number,
  reasonOf: (kind: string) => string,
  { details, ofAll }: SubscriptionManager['said'],
): CheckResult[] {
  return [...groupBy(missing, reasonOf)].map(([reason, alike]) => {
    const detail = alike.map(kind => details.get(kind)).find(said => said !== undefined) ?? ofAll;
    return fail(
      'subscriptions',
      `${alike.length} of ${wanted} are missing: ${listShort(alike, SHOWN)} (${withDetail(reason, detail)})`,
      'ringneck up makes them when it runs; at once: ringneck subscriptions ensure',
    );
  });
}
