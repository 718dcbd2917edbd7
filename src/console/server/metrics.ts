import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricsReport, OfAccount } from '../../app/metrics-commands.ts';
import { diskReserveBytes } from '../../base/disk.ts';
import type { Durations } from '../../base/duration-histogram.ts';
import { version } from '../../base/version.ts';

/** What is answered, as Prometheus reads it. */
export interface Exposition {
  type: string;
  text: string;
}

/** The report, and what is known of this process, as metrics. They are counted where they arise: here they have names and words. */
export async function expose(report: MetricsReport): Promise<Exposition> {
  const registry = new Registry();
  const to = new Into(registry);
  addAccounts(to, report);
  addEvents(to, report);
  addStorage(to, report);
  addProcess(to, report);
  return { type: registry.contentType, text: await registry.metrics() };
}

type Labelled = readonly [labels: Record<string, string>, value: number];

class Into {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  gauge(name: string, help: string, values: readonly Labelled[]): void {
    const gauge = new Gauge({ name, help, labelNames: labelsOf(values), registers: [this.#registry] });
    for (const [labels, value] of values) gauge.set(labels, value);
    // Without labels it begins at 0, which would be a moment in 1970.
    if (!values.length) gauge.remove({});
  }

  counter(name: string, help: string, values: readonly Labelled[]): void {
    const counter = new Counter({ name, help, labelNames: labelsOf(values), registers: [this.#registry] });
    for (const [labels, value] of values) counter.inc(labels, value);
    if (!values.length) counter.remove({});
  }

  histogram(name: string, help: string, values: Counted): void {
    const labelNames = values.flatMap(([labels]) => Object.keys(labels)).slice(0, 1);
    new CountedHistogram({ name, help, labelNames, registers: [this.#registry] }, values);
  }
}

const labelsOf = (values: readonly Labelled[]) => Object.keys(values[0]?.[0] ?? {});

type Counted = readonly (readonly [labels: Record<string, string>, counted: Durations])[];

/** prom-client counts for itself only what is observed by it: this one shows what was counted elsewhere. */
class CountedHistogram extends Histogram {
  readonly #shown: { name: string; help: string };
  readonly #counted: Counted;

  constructor(shown: ConstructorParameters<typeof Histogram>[0], counted: Counted) {
    super(shown);
    this.#shown = shown;
    this.#counted = counted;
  }

  override async get(): ReturnType<Histogram['get']> {
    const { name } = this.#shown;
    const values = this.#counted.flatMap(([labels, { buckets, count, sum }]) => [
      ...buckets.map(([le, value]) => ({ metricName: `${name}_bucket`, labels: { ...labels, le }, value })),
      { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ]);
    // As enum it is known to TypeScript alone; the text has its name.
    return { name, help: this.#shown.help, collect: () => undefined, type: 'histogram' as never, aggregator: 'sum', values };
  }

  /** What the registry asks instead of `get`, without its types' saying so. */
  getForPromString(): ReturnType<Histogram['get']> {
    return this.get();
  }
}

const by = (label: string, values: Readonly<Record<string, number>>): Labelled[] =>
  Object.entries(values).map(([key, value]) => [{ [label]: key }, value]);
const one = (value: number | null): Labelled[] => (value === null ? [] : [[{}, value]]);
const perAccount = (values: readonly OfAccount[]): Labelled[] => values.map(({ user_id: account, at }) => [{ account }, at]);

function addAccounts(to: Into, { accounts, read, untold, sign_ins, sign_in_ends, last_nightly }: MetricsReport): void {
  to.gauge('ringneck_accounts', 'Accounts by state; parked are those whom the service refuses.', by('state', accounts));
  to.gauge(
    'ringneck_account_read_timestamp_seconds',
    'When the collection of an active account that was read to its end longest ago was; where one never was, since when the account is active. Of more than 1,000 accounts the 1,000 furthest behind.',
    perAccount(read),
  );
  to.gauge('ringneck_accounts_unlisted', 'Active accounts that ringneck_account_read_timestamp_seconds leaves out.', one(untold));
  to.gauge(
    'ringneck_sign_ins',
    'Sign-ins of active accounts: renewed by themselves, failing to be renewed, or ending because nothing renews them.',
    by('state', sign_ins),
  );
  to.gauge(
    'ringneck_sign_in_end_timestamp_seconds',
    'When the token of an active account ends that is not renewed, or could not be; the first 1,000.',
    perAccount(sign_in_ends),
  );
  to.gauge(
    'ringneck_nightly_last_success_timestamp_seconds',
    'When the last nightly run ended in which nothing failed; absent until there is one.',
    one(last_nightly),
  );
}

function addEvents(to: Into, { events, refused, inbox, queue, requests }: MetricsReport): void {
  to.histogram(
    'ringneck_event_lag_seconds',
    'From the acceptance of an event until what it announced is stored, removed or known to be unchanged.',
    [[{}, events.lag]],
  );
  to.counter(
    'ringneck_events_total',
    'Events by outcome. One whose document changed at a second look counts twice.',
    by('outcome', events.outcomes),
  );
  to.counter('ringneck_events_refused_total', 'Events that were not accepted, by reason.', by('reason', refused));
  to.gauge('ringneck_inbox_events', 'Events that are accepted and have no outcome yet.', one(inbox.events));
  to.gauge('ringneck_inbox_unreadable_events', 'Lines of the inbox that cannot be read: lost events.', one(inbox.unreadable));
  to.gauge('ringneck_queue_up', 'Whether the queue is open and answers.', one(queue ? 1 : 0));
  const jobs = Object.entries(queue ?? {}).flatMap(([name, states]) =>
    Object.entries(states).map(([state, count]): Labelled => [{ queue: name, state }, count]),
  );
  to.gauge('ringneck_queue_jobs', 'Jobs by queue and state.', jobs);
  to.counter(
    'ringneck_service_requests_total',
    'Requests for data to the service by class of answer: 4xx without 429; none: no answer came.',
    by('answer', requests),
  );
}

function addStorage(to: Into, { writer, snapshot, file_bytes, disks }: MetricsReport): void {
  const lanes = Object.entries(writer);
  to.histogram(
    'ringneck_writer_group_seconds',
    'How long it takes to commit a group of changes, by lane: live goes before bulk.',
    lanes.map(([lane, { groups }]) => [{ lane }, groups]),
  );
  to.counter(
    'ringneck_writer_changes_total',
    'Changes in those groups.',
    lanes.map(([lane, { changes }]) => [{ lane }, changes]),
  );
  to.gauge(
    'ringneck_writer_waiting_changes',
    'Changes that wait to be committed.',
    lanes.map(([lane, { waiting }]) => [{ lane }, waiting]),
  );
  to.gauge('ringneck_snapshot_timestamp_seconds', 'When the published snapshot was made; absent without one.', one(snapshot.at));
  to.gauge(
    'ringneck_snapshot_current',
    'Whether all that is stored is in the snapshot, however old it is.',
    one(Number(snapshot.is_current)),
  );
  to.gauge('ringneck_file_size_bytes', 'Size of what lies in the data folder.', by('file', file_bytes));
  const space = (kind: 'bytes' | 'free') => disks.map((disk): Labelled => [{ folder: disk.folder }, disk[kind]]);
  to.gauge('ringneck_disk_size_bytes', 'Size of the file system of a folder.', space('bytes'));
  to.gauge('ringneck_disk_free_bytes', 'What is free there.', space('free'));
  to.gauge('ringneck_disk_reserve_bytes', 'Nothing is written where less is free.', one(diskReserveBytes));
}

function addProcess(to: Into, { duckdb_version }: MetricsReport): void {
  const versions = { version, duckdb: duckdb_version.replace(/^v/, ''), node: process.versions.node };
  to.gauge('ringneck_build_info', 'Versions of Ringneck, DuckDB and Node.js.', [[versions, 1]]);
  const { user, system } = process.cpuUsage();
  to.counter('process_cpu_seconds_total', 'CPU time of the process.', one((user + system) / 1_000_000));
  to.gauge('process_resident_memory_bytes', 'Memory of the process.', one(process.memoryUsage.rss()));
  to.gauge('process_start_time_seconds', 'When the process began.', one(performance.timeOrigin / 1000));
}
