import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { resources } from '../../schema/index.ts';
import { dayOfMicros } from '../../schema/instant.ts';
import { UsageError } from '../errors.ts';
import { ensureFolder } from '../files.ts';
import type { Edit } from '../service/people/edits.ts';
import { createPeople } from '../service/people/people.ts';
import { peopleSource } from '../service/people/source.ts';
import type { ServiceSettings } from '../service/settings.ts';
import type { DocumentSource } from '../service/source.ts';
import { findServiceOptions, openServiceState } from '../service/state.ts';
import { interruptible } from './interrupt.ts';
import { listening } from './listen.ts';
import { parseDay, wholeNumber, withExample } from './options.ts';
import { formatTable, printJson, printLine, remark } from './print.ts';
import { openSession } from './session.ts';

interface Options {
  people?: number;
  from?: string;
  to?: string;
  seed?: number;
  port: number;
  host: string;
  json?: true;
  newTokens?: true;
  pageSize?: number;
  heartRatePageSize?: number;
  rateLimit?: { requests: number; seconds: number };
  appRateLimit?: { requests: number; seconds: number };
  inclusiveEnd?: true;
  specificationOnly?: true;
}

/** What a first start takes for what it is not told. */
const FIRST = { people: 3, seed: 7, from: '2025-01-01' };

/** What the command line names; the rest is as at the first start. */
function given({ people, seed, from, to }: Options): { people?: number; seed?: number; from?: string; to?: string } {
  return Object.fromEntries(Object.entries({ people, seed, from, to }).filter(([, value]) => value !== undefined));
}

export function addService(program: Command): void {
  withExample(
    program
      .command('service')
      .description('serve the health-data service itself, over generated people')
      .option('--people <n>', `how many people (${FIRST.people})`, wholeNumber(1, 10_000))
      .option('--from <day>', `first day of their data (${FIRST.from})`, parseDay)
      .option('--to <day>', 'last day of their data (today, growing with the calendar)', parseDay)
      .option('--seed <n>', `which people (${FIRST.seed})`, wholeNumber(0, 4_294_967_295))
      .option('--port <port>', 'where to listen; 0 picks a free port', wholeNumber(0, 65_535), 4000)
      .option('--host <host>', 'where to listen', '127.0.0.1')
      .option('--json', 'print people, tokens and address as one line of JSON')
      .option('--new-tokens', 'give everybody a new token; the former ones are revoked')
      .option('--page-size <n>', 'documents on a page', wholeNumber(1, 10_000))
      .option('--heart-rate-page-size <n>', 'heart-rate rows on a page', wholeNumber(1, 100_000))
      .option('--rate-limit <n/seconds>', 'requests per token', parseRate)
      .option('--app-rate-limit <n/seconds>', 'requests of all tokens together', parseRate)
      .option('--inclusive-end', 'count the last day of a range in, for every collection')
      .option('--specification-only', 'serve only the routes of section 4 of the specification'),
    'ringneck service --people 3 --from 2025-01-01 --to 2025-12-31 --seed 7 --port 4000',
  ).action(async (options: Options) => {
    const { settings, log } = openSession();
    const folder = join(settings.data, 'service');
    ensureFolder(folder);
    const asked = { ...FIRST, ...findServiceOptions(folder), ...given(options) };
    const { people, seed, from, to }: { people: number; seed: number; from: string; to?: string } = asked;
    if (to !== undefined && from > to) throw new UsageError(`--from ${from} is after --to ${to}`);
    const { persons } = createPeople({ seed, count: people, from, to: from });
    const newTokens = options.newTokens ?? false;
    const state = openServiceState(folder, { people: persons, seed, from, ...(to === undefined ? {} : { to }), newTokens });
    try {
      const source = growingSource(
        () => to ?? dayOfMicros(Date.now() * 1000),
        last => peopleSource(createPeople({ seed, count: people, from, to: last, edits: state.edits as readonly Edit[] })),
      );
      const { createService } = await import('../service/service.ts');
      const service = createService({
        resources,
        source,
        authenticate: state.authenticate,
        tokenKey: state.tokenKey,
        clock: () => new Date(),
        settings: settingsOf(options),
        log,
      });
      const { host, port } = options;
      const url = await listening({ host, port }, '--port', service.listen({ host, port }));
      if (options.json) printJson({ url, people: state.people, client: null, control: null });
      else printPeople(url, state.people);
      try {
        await interruptible(signal => untilStopped(signal));
      } finally {
        await service.close();
        // The channel to the process that forked this one would keep it alive.
        if (process.connected) process.disconnect();
      }
    } finally {
      state.close();
    }
  });
}

/** Without a last day the people live on: theirs is the source of today, made anew when the day turns. */
function growingSource(lastDay: () => string, sourceOf: (to: string) => DocumentSource): DocumentSource {
  let current: { to: string; source: DocumentSource } | undefined;
  const today = () => {
    const to = lastDay();
    if (current?.to !== to) current = { to, source: sourceOf(to) };
    return current.source;
  };
  return {
    list: (...query) => today().list(...query),
    find: (...query) => today().find(...query),
    heartRate: (...query) => today().heartRate(...query),
    personalInfo: (...query) => today().personalInfo(...query),
  };
}

function settingsOf(options: Options): Partial<ServiceSettings> {
  return {
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    ...(options.heartRatePageSize === undefined ? {} : { heartRatePageSize: options.heartRatePageSize }),
    ...(options.rateLimit === undefined ? {} : { rateLimit: options.rateLimit }),
    ...(options.appRateLimit === undefined ? {} : { appRateLimit: options.appRateLimit }),
    inclusiveEnd: options.inclusiveEnd ?? false,
    specificationOnly: options.specificationOnly ?? false,
  };
}

function parseRate(text: string): { requests: number; seconds: number } {
  const match = /^([1-9]\d{0,6})\/([1-9]\d{0,5})$/.exec(text);
  if (!match) throw new InvalidArgumentError('expected requests/seconds, like 300/60');
  return { requests: Number(match[1]), seconds: Number(match[2]) };
}

function printPeople(url: string, people: readonly { name: string; user_id: string; token: string | null }[]): void {
  printLine(
    formatTable(
      ['name', 'user_id', 'token'],
      people.map(({ name, user_id, token }) => [name, user_id, token ?? '(as before)']),
    ),
  );
  printLine();
  printLine(`serving at ${url}, described at ${url}/docs`);
  if (people.some(({ token }) => token === null)) remark('Tokens are shown once, when they are made; --new-tokens replaces them.');
}

/** Until Ctrl-C, SIGTERM, or the end of the process that forked this one. */
function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve());
    process.once('disconnect', () => resolve());
  });
}
