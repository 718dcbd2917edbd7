import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import type { Operation, WebhookEvent } from '../../schema/webhook.ts';
import { oneOfEach } from '../service/documents.ts';
import { type Asked, startFaultService } from './fault-service.ts';
import { below, pick, type Random, randomFrom } from './random-documents.ts';

export const PEOPLE = ['ada', 'ben', 'cem'];
const SLOWEST_ANSWER_MS = 150;

/** Types that may be announced: with samples and without, with a document route that 4.1 lists and without. */
const VERSIONS: Record<string, (version: number) => WireDocument> = {
  daily_activity: version => ({
    steps: version,
    met: { interval: 60, items: itemsOf(version), timestamp: '2025-03-09T04:00:00.000+01:00' },
  }),
  sleep: version => ({
    period: version,
    heart_rate: { interval: 300, items: itemsOf(version), timestamp: '2025-03-08T23:05:00.000+01:00' },
  }),
  session: version => ({ motion_count: { interval: 5, items: [version, null], timestamp: '2025-03-09T12:10:00.000+01:00' } }),
  daily_spo2: version => ({ spo2_percentage: { average: 90 + version / 8 } }),
  vO2_max: version => ({ vo2_max: version }),
  daily_stress: version => ({ day_summary: `version ${version}` }),
};

const itemsOf = (version: number) => Array.from({ length: 40 + (version % 7) }, (_, i) => (i % 9 === 4 ? null : version + i / 8));

/** A document at the service. */
export interface Changing {
  person: string;
  path: string;
  id: string;
  /** Counts its changes. */
  version: number;
  /** Undefined: the service does not have it now. */
  document: WireDocument | undefined;
}

export interface ChangingService {
  url: string;
  documents: Changing[];
  /** Changes one of the documents; the service is so before anybody is told. */
  change(random: Random): { changed: Changing; event: WebhookEvent };
}

/** Counts events: no two have the same moment. */
export const EVENT_TIMES_FROM = '2025-03-10 12:00:00';

/**
 * A service whose documents change all the time. Each of its answers says what was so when the request came, and comes a little later.
 * @param deletes `once`: of a document that was there from the beginning, and that nothing else is told of before; then nobody ever has
 * to wait for a document that does not come. `any`: at any time
 */
export async function startChangingService(deletes: 'once' | 'any'): Promise<ChangingService> {
  const service = await startFaultService();
  onTestFinished(() => service.close());
  const documents: Changing[] = PEOPLE.flatMap(person =>
    Object.keys(VERSIONS).flatMap(path => [
      ...[1, 2, 3, 4].map(n => ({ person, path, id: `${path}-${n}`, version: 0, document: undefined })),
      ...[1, 2, 3, 4].map(n => keep({ person, path, id: `doomed-${path}-${n}`, version: 1, document: undefined })),
    ]),
  );
  const lag = randomFrom(1);
  const late = async <T>(answer: T): Promise<T> => {
    await sleep(below(lag, SLOWEST_ANSWER_MS));
    return answer;
  };
  const ownedBy = ({ token }: Asked) => documents.filter(({ person, document }) => document && token === `${person}-token`);
  for (const path of Object.keys(VERSIONS)) {
    service.on(`/v2/usercollection/${path}`, asked => {
      const [from = '', to = '9999'] = [asked.query.get('start_date') ?? '', asked.query.get('end_date') ?? '9999'];
      const found = ownedBy(asked).filter(one => one.path === path && dayOf(one) >= from && dayOf(one) <= to);
      return late({ json: { data: found.map(({ document }) => document), next_token: null } });
    });
    service.on(`/v2/usercollection/${path}/*`, asked => {
      const found = ownedBy(asked).find(one => one.path === path && asked.path.endsWith(`/${one.id}`));
      return late(found ? { json: found.document } : { status: 404, json: { detail: 'Document not found.' } });
    });
  }
  service.on('/v2/usercollection/heartrate', {});
  service.on('/v2/usercollection/personal_info', ({ token }) => ({ json: { id: `service-${token!.replace('-token', '')}` } }));

  let events = 0;
  const over = new Set<Changing>();
  function change(random: Random): { changed: Changing; event: WebhookEvent } {
    const changed = pick(
      random,
      documents.filter(one => !over.has(one)),
    );
    const isDoomed = changed.id.startsWith('doomed');
    changed.version++;
    let command: Operation = changed.document ? 'update' : 'create';
    if (changed.document && (deletes === 'any' ? random() < 0.25 : isDoomed)) {
      command = 'delete';
      changed.document = undefined;
    } else keep(changed);
    // Some are made again; nothing more is told of them then.
    if (deletes === 'once' && isDoomed && (command === 'create' || random() < 0.5)) over.add(changed);
    const event_time = `${EVENT_TIMES_FROM.replace(' ', 'T')}.${String(++events).padStart(6, '0')}+00:00`;
    const { path, id: object_id, person } = changed;
    return {
      changed,
      event: { event_type: command, data_type: path.toLowerCase(), object_id, event_time, user_id: `service-${person}` },
    };
  }
  return { url: service.url, documents, change };
}

/** Every change also moves the document to another day. */
function keep(changing: Changing): Changing {
  const { path, id, version } = changing;
  changing.document = { ...oneOfEach[path]![0], ...VERSIONS[path]!(version), id, day: `2025-03-0${1 + (version % 7)}` };
  return changing;
}

const dayOf = ({ document }: Changing) => String(document?.day);
