import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Access, accessBy, fixWritable } from './access.ts';
import { didYouMean } from './did-you-mean.ts';
import { messageOf, UsageError } from './errors.ts';
import { readWithStats } from './files.ts';
import {
  callbackUrl,
  commandLine,
  count,
  cronPattern,
  fileMode,
  fileVariable,
  headerValue,
  isPrivateWay,
  lakeAddress,
  matching,
  oneOf,
  optional,
  path,
  portOrOff,
  queueUrl,
  redirectUrl,
  required,
  type Setting,
  scopes,
  secret,
  serviceUrl,
  shortLine,
  timeZone,
} from './setting.ts';

/** The environment, here and nowhere else; the command line hands it to `readSettings`. */
export const environment: NodeJS.ProcessEnv = process.env;

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const declared = {
  serviceUrl: optional('RINGNECK_SERVICE_URL', 'base address of the service', serviceUrl),
  allowHttp: optional(
    'RINGNECK_ALLOW_HTTP',
    '`1`: RINGNECK_SERVICE_URL may be `http:` on another host, although tokens then travel unencrypted',
    oneOf(['0', '1']),
  ),
  personalInfo: optional(
    'RINGNECK_PERSONAL_INFO',
    '`1`: all of personal_info is kept (age, sex, height, weight, e-mail address), read with the recent days; without it only its identifier is asked for',
    oneOf(['0', '1']),
  ),
  data: required(
    'RINGNECK_DATA',
    './data',
    'data folder: warehouse, snapshot, secret key, inbox, queue, state of `ringneck service`',
    path,
  ),
  warehouse: optional(
    'RINGNECK_WAREHOUSE',
    'a lake in place of the warehouse’s file (docs/lake.md): `ducklake:postgres://user@host/catalogue?data=s3://bucket/prefix`, or a folder as `data`; `&host=` may name the folder of a socket',
    lakeAddress,
    'a file in the data folder',
  ),
  lakePassword: secret(
    optional('RINGNECK_LAKE_PASSWORD', 'lake: password of its user in Postgres', matching(/^[^\0]{1,512}$/, 'at most 512 characters')),
  ),
  lakeKey: optional('RINGNECK_LAKE_KEY', 'lake: id of the key to its bucket', headerValue),
  lakeSecret: secret(optional('RINGNECK_LAKE_SECRET', 'lake: the secret of that key', headerValue)),
  lakeEndpoint: optional('RINGNECK_LAKE_ENDPOINT', 'lake: address of an S3 service other than Amazon’s', serviceUrl),
  lakeRegion: required('RINGNECK_LAKE_REGION', 'us-east-1', 'lake: region of its bucket', headerValue),
  duckdbExtensions: optional(
    'RINGNECK_DUCKDB_EXTENSIONS',
    'lake: folder with `ducklake`, `postgres_scanner` and `httpfs`, each as `NAME.duckdb_extension`, where DuckDB cannot fetch them itself',
    path,
    'DuckDB fetches and keeps them',
  ),
  queueUrl: secret(
    optional('RINGNECK_QUEUE_URL', '`redis://…`; without one the queue runs embedded in the data folder', queueUrl, 'embedded'),
  ),
  queuePrefix: required(
    'RINGNECK_QUEUE_PREFIX',
    'ringneck',
    'prefix of the queue’s keys in Redis',
    matching(/^[A-Za-z0-9_.{}-]{1,64}$/, '1 to 64 of A–Z, a–z, 0–9, “_”, “.”, “-”, “{” and “}”'),
  ),
  host: required(
    'RINGNECK_HOST',
    '127.0.0.1',
    'address on which `up` listens',
    matching(/^[A-Za-z0-9_.:%-]+$/, 'a host name or an IP address'),
  ),
  port: required('RINGNECK_PORT', '8080', 'port on which `up` listens; 0 picks a free one', count(0, 65535)),
  logLevel: required('RINGNECK_LOG_LEVEL', 'info', logLevels.join(', '), oneOf(logLevels)),
  secretKey: secret(
    optional(
      'RINGNECK_SECRET_KEY',
      'encrypts the accounts’ tokens: any text of at least 16 characters',
      matching(/^\s*\S[\s\S]{14,}\S\s*$/, 'at least 16 characters'),
      '`<data>/secret.key`',
    ),
  ),
  nightly: required('RINGNECK_NIGHTLY', '30 3 * * *', 'when `up` reads the recent days again: a cron pattern', cronPattern),
  nightlyDays: required('RINGNECK_NIGHTLY_DAYS', '14', 'how many days `nightly` reads again', count(1, 3650)),
  timeZone: required(
    'RINGNECK_TIME_ZONE',
    // With TZ set to nonsense there is no zone at all, whatever the type says.
    Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'UTC',
    'time zone of the cron pattern',
    timeZone,
    'the system’s',
  ),
  historyDays: required(
    'RINGNECK_HISTORY_DAYS',
    '30',
    'how many days `up` reads at once of an account that was never read; 0: none, they come with sweeps and nights',
    count(0, 3650),
  ),
  sweepHours: required('RINGNECK_SWEEP_HOURS', '6', 'hours between two sweeps, which read the last days again', count(1, 168)),
  sweepDays: required('RINGNECK_SWEEP_DAYS', '3', 'how many days a sweep reads again', count(1, 365)),
  heartRateMinutes: required(
    'RINGNECK_HEART_RATE_MINUTES',
    '15',
    'minutes between two readings of the heart rate, which has no events',
    count(1, 1440),
  ),
  settledDays: required(
    'RINGNECK_SETTLED_DAYS',
    '14',
    'days after its end from which a day that was read is settled: it is not read again',
    count(0, 3650),
  ),
  requestsPerToken: required('RINGNECK_REQUESTS_PER_TOKEN', '8', 'requests in flight for one account', count(1, 64)),
  heartRatePath: required(
    'RINGNECK_HEART_RATE_PATH',
    'auto',
    '`auto`: the plain path, or the path of 4.3 once the service has said twice that it lacks the plain path and has never answered there; or a path of your choice',
    matching(/^(auto|\/[^\s?#]*)$/, '“auto” or a path that begins with “/”'),
  ),
  callbackUrl: optional('RINGNECK_CALLBACK_URL', 'webhooks: the full address at which the service reaches `/webhook` of `up`', callbackUrl),
  clientId: optional('RINGNECK_CLIENT_ID', 'webhooks and sign-in: the client’s id at the service', headerValue),
  clientSecret: secret(optional('RINGNECK_CLIENT_SECRET', 'webhooks and sign-in: the client’s secret; it signs the events', headerValue)),
  clientSecretOld: secret(
    optional('RINGNECK_CLIENT_SECRET_OLD', 'webhooks: the previous secret, accepted while it is being replaced', headerValue),
  ),
  verificationToken: secret(
    optional('RINGNECK_VERIFICATION_TOKEN', 'webhooks: the token that the service must present when it verifies the callback', headerValue),
  ),
  signatureWindow: required(
    'RINGNECK_SIGNATURE_WINDOW',
    '300',
    'how many seconds an event’s timestamp may differ from this machine’s clock, in either direction; 0: not checked',
    count(0, 86_400),
  ),
  authorizeUrl: optional(
    'RINGNECK_AUTHORIZE_URL',
    'sign-in: the service’s page on which a person signs in',
    serviceUrl,
    '`/oauth/authorize` at RINGNECK_SERVICE_URL',
  ),
  tokenUrl: optional(
    'RINGNECK_TOKEN_URL',
    'sign-in: where the service gives and renews tokens; it takes them back at `revoke` beside it',
    serviceUrl,
    '`/oauth/token` at RINGNECK_SERVICE_URL',
  ),
  redirectUrl: required(
    'RINGNECK_REDIRECT_URL',
    'http://127.0.0.1:8976/callback',
    'sign-in: where the service sends the answer, to the letter as it is registered there; `account login` listens at one on this machine',
    redirectUrl,
  ),
  scopes: required(
    'RINGNECK_SCOPES',
    'personal daily heartrate workout tag session spo2Daily',
    'sign-in: what a person is asked to allow; `email` is refused',
    scopes,
  ),
  publicUrl: optional(
    'RINGNECK_PUBLIC_URL',
    'enrolling: where `/connect` of `up` is reached from outside, with the path that a proxy takes away; the service sends people back to `/connect/callback` there',
    serviceUrl,
    'the origin of RINGNECK_CALLBACK_URL',
  ),
  studyName: optional('RINGNECK_STUDY_NAME', 'enrolling: who asks, as the pages call it', shortLine),
  studyContact: optional('RINGNECK_STUDY_CONTACT', 'enrolling: whom people can ask, as the pages show it', shortLine),
  studyText: optional(
    'RINGNECK_STUDY_TEXT',
    'enrolling: a file with the study’s own text, which the page of an invitation shows as it is: UTF-8, at most 64 kB',
    path,
  ),
  headerPrefix: required(
    'RINGNECK_HEADER_PREFIX',
    'x-service-',
    'prefix of the header names `timestamp` and `signature`',
    matching(/^[A-Za-z0-9-]{1,64}$/, '1 to 64 of A–Z, a–z, 0–9 and “-”'),
  ),
  consoleHost: required(
    'RINGNECK_CONSOLE_HOST',
    '127.0.0.1',
    'console: address on which it listens; another than this machine’s own wants `https:` in front',
    matching(/^[A-Za-z0-9_.:%-]+$/, 'a host name or an IP address'),
  ),
  consolePort: required(
    'RINGNECK_CONSOLE_PORT',
    '8088',
    'console: port on which `up` serves it; 0 picks a free one, `off` serves none',
    portOrOff,
  ),
  consoleUrl: optional('RINGNECK_CONSOLE_URL', 'console: where it is reached by way of a proxy, with the path in front', serviceUrl),
  chromium: optional(
    'RINGNECK_CHROMIUM',
    'report: Chromium, or a browser that takes its options, by which `--pdf` prints: a path',
    path,
    'the first of Chromium, Chrome and Edge that there is',
  ),
  metricsToken: secret(
    optional(
      'RINGNECK_METRICS_TOKEN',
      'console: what Prometheus presents at `/metrics`: 16 to 512 characters of printable ASCII without blanks; without it a session of an operator is needed there',
      matching(/^[\x21-\x7e]{16,512}$/, '16 to 512 characters of printable ASCII without blanks'),
    ),
  ),
  onFailure: optional(
    'RINGNECK_ON_FAILURE',
    'command to run, without a shell, when an account is parked, a run fails, events were missed, somebody withdraws or an invitation meets the wrong person; its environment has RINGNECK_REASON, RINGNECK_USER, RINGNECK_COLLECTION, RINGNECK_MESSAGE',
    commandLine,
  ),
  snapshot: optional(
    'RINGNECK_SNAPSHOT',
    'path of the snapshot for readers, in a folder that only you can write to; an existing file that is not a snapshot is never overwritten',
    path,
    '`<data>/snapshot.duckdb`',
  ),
  snapshotMode: required('RINGNECK_SNAPSHOT_MODE', '0600', 'the snapshot’s file mode, octal', fileMode),
} satisfies Record<string, Setting<unknown>>;

type Declared = typeof declared;
type ValueOf<Item> = Item extends Setting<infer Value> ? Value : never;

/** What webhooks need, all together. */
export interface WebhookSettings {
  callbackUrl: string;
  clientId: string;
  clientSecret: string;
  /** That of before too, while it is being replaced. */
  secrets: readonly string[];
  verificationToken: string;
}

/** What sign-in needs. */
export interface SignInSettings {
  authorizeUrl: string;
  tokenUrl: string;
  redirectUrl: string;
  scopes: readonly string[];
  clientId: string;
  clientSecret: string;
}

/** What the pages need on which invited people sign in. */
export interface EnrolmentSettings {
  /** Where they are reached from outside. */
  publicUrl: string;
  studyName: string;
  studyContact: string;
  /** The file with the study's own text. */
  studyText: string | undefined;
}

/** All settings, validated; paths are absolute. */
export type Settings = { readonly [Key in keyof Declared]: ValueOf<Declared[Key]> } & {
  readonly snapshot: string;
  /** Null: nobody can sign in, for want of the service or the client. */
  readonly signIn: SignInSettings | null;
  /** Null: nobody can be invited. */
  readonly enrolment: EnrolmentSettings | null;
  /** Null: webhooks are not configured. */
  readonly webhooks: WebhookSettings | null;
  /** Whether RINGNECK_DATA names the data folder. */
  readonly namesData: boolean;
  /** One sentence for each RINGNECK_* variable that is no setting. */
  readonly unknown: readonly string[];
  /** The files of secrets that other users of this machine can read. */
  readonly readable: readonly Access[];
};

/**
 * Reads every setting; an empty variable counts as not set. Throws one UsageError that names all wrong ones. `follows`: whether webhooks
 * may be wanted, which are four settings together; the service itself follows nobody.
 */
export function readSettings(env: NodeJS.ProcessEnv, { follows = true }: { follows?: boolean } = {}): Settings {
  const wrong: string[] = [];
  const readable: Access[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries<Setting<unknown>>(declared)) {
    const given = findGiven(setting, env, wrong, readable) || setting.fallback;
    if (given === undefined) continue;
    const value = setting.value.parse(given);
    if (value !== undefined) values[key] = value;
    else wrong.push(`${setting.variable}${shownValue(setting, env)}: expected ${setting.value.expected}`);
  }
  for (const key of ['serviceUrl', 'authorizeUrl', 'tokenUrl', 'publicUrl'] as const) {
    if (values[key] === undefined || values.allowHttp === '1' || isPrivateWay(String(values[key]))) continue;
    wrong.push(
      `${declared[key].variable} is http: on another host, where everybody on the way can read the tokens: ` +
        'give its https: address, or set RINGNECK_ALLOW_HTTP=1',
    );
  }
  const webhooks = follows ? readWebhooks(values, wrong) : null;
  if (wrong.length > 0) throw new UsageError(`Wrong ${wrong.length === 1 ? 'setting' : 'settings'}. ${wrong.join('; ')}.`);
  values.snapshot ??= resolve(String(values.data), 'snapshot.duckdb');
  // The keys are those of `declared`, each parsed by its own parser: the one step that the compiler cannot follow.
  const namesData = Boolean(env.RINGNECK_DATA);
  const derived = { webhooks, signIn: readSignIn(values), enrolment: readEnrolment(values), namesData };
  return { ...values, ...derived, unknown: unknownVariables(env), readable } as unknown as Settings;
}

/** The text of a setting: of a secret one also from its file. */
function findGiven(setting: Setting<unknown>, env: NodeJS.ProcessEnv, wrong: string[], readable: Access[]): string | undefined {
  const given = env[setting.variable];
  const file = setting.secret && env[fileVariable(setting)];
  if (!file) return given;
  if (given) {
    wrong.push(`${setting.variable} and ${fileVariable(setting)} are both set: give one of them`);
    return undefined;
  }
  try {
    const { bytes, stats } = readWithStats(file);
    // A pipe may never end, and is empty for whoever reads it next.
    if (!stats.isFile()) {
      wrong.push(`${fileVariable(setting)}: ${file} is no regular file; a folder, a pipe, /dev/stdin and <(…) are not read`);
      return undefined;
    }
    const fix = fixWritable(file, stats);
    if (fix) wrong.push(`${fileVariable(setting)}: others can write ${file}: ${fix}`);
    const access = isOfContainer(file) ? undefined : accessBy(stats, file, `${fileVariable(setting)}: ${file} is`);
    if (access?.can === 'read') readable.push(access);
    const content = bytes.toString().replace(/\r?\n$/, '');
    if (!content) wrong.push(`${fileVariable(setting)}: ${file} is empty`);
    return content;
  } catch (error) {
    wrong.push(`${fileVariable(setting)} cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}

/** What a container is handed is readable by all of its users, and nobody else has its `/run/secrets`. */
const isOfContainer = (file: string) => realpathSync(file).startsWith('/run/secrets/');

export const NO_SERVICE =
  'RINGNECK_SERVICE_URL is not set: ringneck init asks for it; or set it to the base address of the service, as http://127.0.0.1:4000';

/** What is to be done where nobody can sign in. */
export const NO_CLIENT =
  'nobody can sign in: set RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, which the service gives to a registered application';

/** What is to be done where nobody can be invited. */
export const NO_ENROLMENT =
  'nobody can be invited: set RINGNECK_STUDY_NAME, RINGNECK_STUDY_CONTACT, and RINGNECK_PUBLIC_URL (or RINGNECK_CALLBACK_URL), an https: address that leads to `ringneck up`';

/** What is to be done where webhooks are not configured. */
export const NO_WEBHOOKS =
  'webhooks are not configured: set RINGNECK_CALLBACK_URL, RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET, RINGNECK_VERIFICATION_TOKEN';

/** Webhooks need four settings together; without any of them they are off. The client alone is for sign-in, and both halves of it belong together. */
function readWebhooks(values: Record<string, unknown>, wrong: string[]): WebhookSettings | null {
  const keys = ['callbackUrl', 'clientId', 'clientSecret', 'verificationToken'] as const;
  const missing = keys.filter(key => values[key] === undefined);
  const given = keys.filter(key => values[key] !== undefined);
  const isForSignIn = given.join() === 'clientId,clientSecret';
  if (given.length && missing.length && !isForSignIn) {
    const name = (key: (typeof keys)[number]) => declared[key].variable;
    const need = given.every(key => key.startsWith('client'))
      ? 'sign-in needs both halves of the client, and webhooks need'
      : 'webhooks need';
    wrong.push(
      `${missing.map(name).join(', ')}: not set, but ${given.map(name).join(', ')} ${given.length === 1 ? 'is' : 'are'}; ${need} all four`,
    );
  }
  if (missing.length) return null;
  const textOf = (key: (typeof keys)[number] | 'clientSecretOld') => String(values[key]);
  const clientSecret = textOf('clientSecret');
  return {
    callbackUrl: textOf('callbackUrl'),
    clientId: textOf('clientId'),
    clientSecret,
    secrets: [clientSecret, ...(values.clientSecretOld === undefined ? [] : [textOf('clientSecretOld')])],
    verificationToken: textOf('verificationToken'),
  };
}

/** The addresses of the service where none are given, and the client. */
function readSignIn(values: Record<string, unknown>): SignInSettings | null {
  const { serviceUrl, clientId, clientSecret } = values;
  if (serviceUrl === undefined || clientId === undefined || clientSecret === undefined) return null;
  return {
    authorizeUrl: String(values.authorizeUrl ?? `${serviceUrl}/oauth/authorize`),
    tokenUrl: String(values.tokenUrl ?? `${serviceUrl}/oauth/token`),
    redirectUrl: String(values.redirectUrl),
    scopes: [values.scopes].flat().map(String),
    clientId: String(clientId),
    clientSecret: String(clientSecret),
  };
}

/** Pages on which people sign in are not shown over plain HTTP to another host, unless that is allowed. */
function readEnrolment(values: Record<string, unknown>): EnrolmentSettings | null {
  const { studyName, studyContact, studyText, callbackUrl, allowHttp } = values;
  const publicUrl = values.publicUrl ?? (callbackUrl === undefined ? undefined : new URL(String(callbackUrl)).origin);
  if (publicUrl === undefined || studyName === undefined || studyContact === undefined) return null;
  if (allowHttp !== '1' && !isPrivateWay(String(publicUrl))) return null;
  return {
    publicUrl: String(publicUrl),
    studyName: String(studyName),
    studyContact: String(studyContact),
    studyText: studyText === undefined ? undefined : String(studyText),
  };
}

/** The settings as the table of docs/settings.md. */
export function settingsTable(): string {
  const rows = Object.values<Setting<unknown>>(declared).map(
    ({ variable, fallback, shown, meaning }) => `| ${variable} | ${shown ?? `\`${fallback}\``} | ${meaning} |`,
  );
  return ['| name | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** The value for an error message: on one line, and without what could be a secret. */
function shownValue(setting: Setting<unknown>, env: NodeJS.ProcessEnv): string {
  const { variable } = setting;
  const given = env[variable];
  if (!given) return setting.secret ? `, from ${fileVariable(setting)}` : '';
  if (/SECRET|PASSWORD|LAKE_KEY|VERIFICATION_TOKEN|METRICS_TOKEN|CLIENT_ID|ON_FAILURE/.test(variable)) return '';
  const harmless = given
    .replace(/^([a-z][a-z0-9+.-]*:\/+)?.*@/is, '$1***@')
    .replace(/\?.*/s, '?***')
    // As DuckDB and libpq name the parts of an address.
    .replace(/(\w*(?:pass|pwd|secret|token|key)\w*\s*=\s*)('(?:\\.|[^'])*'?|\S+)/gi, '$1***');
  return ` is ${JSON.stringify(harmless.length > 80 ? `${harmless.slice(0, 79)}…` : harmless)}`;
}

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = Object.values<Setting<unknown>>(declared).flatMap(setting =>
    setting.secret ? [setting.variable, fileVariable(setting)] : [setting.variable],
  );
  return Object.keys(env)
    .filter(name => name.startsWith('RINGNECK_') && !known.includes(name))
    .sort()
    .map(name => {
      const nearest = didYouMean(name, known);
      return `${name} is not a setting${nearest ? `: did you mean ${nearest}?` : '.'}`;
    });
}
