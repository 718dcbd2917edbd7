import { RingneckError, shownMessageOf, TryLaterError } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import { withinTime } from '../../base/timeout.ts';
import { keyOf, kindsOf, readWanted } from '../../ledger/subscriptions.ts';
import { listUnknownPersons, mapCommand } from '../../sync/events/unknown-person.ts';
import type { SubscriptionKeeper } from '../../sync/subscriptions/keep-subscriptions.ts';
import { reportSubscriptions, type SubscriptionReport } from '../../sync/webhook-status.ts';
import type { Owner } from '../app.ts';
import { type Finding, fail, notTried, ok, SEE_SERVICE, warn } from './finding.ts';
import { findSilence } from './reach.ts';

const ANSWER_MS = 20_000;
const SHOWN = 5;

/** Whether events wait of somebody whom no account is known to be. */
export async function examineUnknownPersons({ warehouse }: Pick<Owner, 'warehouse'>): Promise<Finding[]> {
  const unknown = await listUnknownPersons(warehouse);
  const findings = unknown
    .slice(0, SHOWN)
    .map(({ service_user_id: id, events }) =>
      warn('events', `${events} of ${printable(id)} wait: no account is known to be that person`, mapCommand(id)),
    );
  if (unknown.length > SHOWN)
    findings.push(warn('events', `those of ${unknown.length - SHOWN} others wait too`, 'ringneck status --json names them'));
  return findings;
}

/** Whether the service has every subscription that there is to be. */
export async function examineSubscriptions(owner: Owner): Promise<Finding[]> {
  if (!owner.settings.webhooks || !owner.settings.serviceUrl) return [];
  const { wanted, problem } = await readWanted(owner.warehouse);
  if (wanted !== 'ensured') {
    return [warn('subscriptions', 'they were removed by command and are not made again', 'ringneck subscriptions ensure')];
  }
  const silence = await findSilence(owner.settings.serviceUrl);
  if (silence !== undefined) return [notTried('subscriptions', silence)];
  let list: Awaited<ReturnType<SubscriptionKeeper['list']>>;
  try {
    list = await withinTime((await owner.keeper()).list(), ANSWER_MS);
  } catch (error) {
    const saysHow = error instanceof RingneckError && !(error instanceof TryLaterError);
    return [fail('subscriptions', shownMessageOf(error), saysHow ? 'do what it says' : SEE_SERVICE)];
  }
  const { theirs, rows } = list;
  const reports = new Map<string, SubscriptionReport>();
  for (const report of reportSubscriptions(rows, theirs)) reports.set(`${report.event_type} ${report.data_type}`, report);
  const kinds = kindsOf(owner.warehouse.mappings.map(({ resource }) => resource.dataType)).map(keyOf);
  const missing = kinds.filter(kind => {
    const report = reports.get(kind);
    return report?.state !== 'not_offered' && (report?.state !== 'active' || report.at_service === false);
  });
  const notOffered = kinds.filter(kind => reports.get(kind)?.state === 'not_offered');
  const findings: Finding[] = [];
  if (missing.length) {
    const reason = problem ?? missing.map(kind => reports.get(kind)?.reason).find(said => said) ?? 'they were never made, or were lost';
    const shown = missing.length > SHOWN ? `${missing.slice(0, SHOWN).join(', ')} and ${missing.length - SHOWN} more` : missing.join(', ');
    const mend = 'ringneck up makes them when it runs; at once: ringneck subscriptions ensure';
    findings.push(fail('subscriptions', `${missing.length} of ${kinds.length} are missing: ${shown} (${reason})`, mend));
  } else
    findings.push(
      ok(
        'subscriptions',
        `all ${kinds.length - notOffered.length} are ${theirs ? 'at the service' : 'active; the service offers no list to compare with'}`,
      ),
    );
  if (notOffered.length) {
    findings.push(ok('subscriptions', `${notOffered.length} the service does not offer: their changes are found by sweeps`));
  }
  return findings;
}
