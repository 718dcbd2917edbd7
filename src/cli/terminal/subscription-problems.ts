import { withDetail } from '../../base/errors.ts';
import { groupBy, listShort } from '../../base/items.ts';
import { formatTable } from './print.ts';

interface Problem {
  event_type: string;
  data_type: string;
  state: string;
  reason: string | null;
  /** What the service itself has said. */
  detail?: string | undefined;
}

const SHOWN = 5;

/** The subscriptions that are not active, those that are alike in one row: where the callback cannot be verified all of them are. */
export function formatProblems(problems: readonly Problem[], indent = ''): string {
  const alike = groupBy(problems, ({ state, reason }) => `${state}\n${reason ?? ''}`);
  const rows = [...alike.values()].map(group => {
    const [{ state, reason }] = group;
    const kinds = group.map(({ event_type, data_type }) => `${event_type} ${data_type}`);
    const detail = group.find(one => one.detail !== undefined)?.detail;
    return [`${indent}${listShort(kinds, SHOWN)}`, state, reason && withDetail(reason, detail)];
  });
  return formatTable([`${indent}subscriptions`, 'state', 'reason'], rows);
}
