import { DAY_FIELDS } from '../../schema/index.ts';
import { summaryOf } from '../../schema/resource.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { Column, Mapping } from './mapping.ts';
import { BOOKKEEPING, listBookkeeping } from './mapping.ts';
import { bareName, qualified, quoteName, quoteText } from './sql.ts';

export interface Table {
  /** As unqualified statements name it: `sleep`, `sync.windows`. */
  name: string;
  comment: string;
  columns: readonly Column[];
}

export const column = (name: string, type: Column['type'], comment: string): Column => ({ name, type, comment });

/** The day of a document under the name that it has everywhere else. */
export const selectDay = ({ dayColumn }: Mapping): string => `${dayColumn === undefined ? 'NULL::DATE' : quoteName(dayColumn)} AS day`;

/** The order of rows in a sorted copy, by user and time: rows of one series compress well. */
export const SORTED_BY: readonly string[] = ['user_id', ...DAY_FIELDS, 'ts', 'start_at', 'started_at'];

const USER = BOOKKEEPING[0]!;

function documentTable({ table, resource, columns, dayColumn }: Mapping): Table {
  const first = columns.filter(({ name }) => name === 'id' || name === dayColumn);
  const rest = columns.filter(column => !first.includes(column));
  return {
    name: table,
    comment: summaryOf(resource),
    columns: [USER, ...first, ...rest, ...BOOKKEEPING.slice(1)],
  };
}

function seriesTables({ series, resource }: Mapping): Table[] {
  return series.map(({ table, path, comment }) => ({
    name: table,
    comment: `${path.join('.')} of ${resource.name}, one row for each sample (2.1)`,
    columns: [
      column('sk', 'BIGINT', `The version of the document, sk of ${resource.name}`),
      USER,
      column('day', 'DATE', 'The day of the document'),
      column('ts', 'TIMESTAMP', 'When the sample was taken, UTC'),
      column('utc_offset', 'INTEGER', 'Local time less UTC when recording started [s]'),
      column('value', 'DOUBLE', `${comment}; null where the service had no value`),
    ],
  }));
}

function listTablesOf({ lists, resource }: Mapping): Table[] {
  return lists.map(({ table, path, comment, columns }) => ({
    name: table,
    comment: `${path.join('.')} of ${resource.name}, one row for each: ${comment}`,
    columns: [...listBookkeeping(resource), ...columns],
  }));
}

const HEART_RATE: Table = {
  name: heartRate.name,
  comment: `Heart rate around the clock, one row for each measurement (${heartRate.paragraph})`,
  columns: [
    USER,
    column('ts', 'TIMESTAMP', 'Moment of the measurement, UTC'),
    column('utc_offset', 'INTEGER', 'Offset the timestamp was written with [s]'),
    column('bpm', 'BIGINT', 'Heart rate [beats/min]'),
    column('source', 'VARCHAR', 'What the person was doing'),
    column('fetched_at', 'TIMESTAMP', 'When the request that brought the row was sent, UTC'),
  ],
};

/** What a study knows of its participants, of whom some may have no account yet. */
const PARTICIPANTS: Table = {
  name: 'participants',
  comment:
    'What a study knows of its participants, one row for each, also before there is an account of that name; joins anything by user_id',
  columns: [
    USER,
    column('group_name', 'VARCHAR', 'Group, or arm, of the study'),
    column('enrolled_from', 'DATE', 'First day in the study'),
    column('enrolled_until', 'DATE', 'Last day in the study, which counts; null while it goes on'),
    column('birth_year', 'BIGINT', 'Year of birth'),
    column('max_heart_rate', 'BIGINT', 'Maximum heart rate, as it was measured or decided [beats/min]'),
    column(
      'extra',
      'JSON',
      "The columns of the study's own, by name: extra->>'site' is a text, (extra->>'bmi')::DOUBLE a number; null where there is none",
    ),
  ],
};

/** Whether its rows are written as entries are: they have no version, nor a day by which they are found. */
export const isWrittenByEntries = ({ name }: Pick<Table, 'name'>): boolean => name.startsWith('sync.') || name === PARTICIPANTS.name;

const COLLECTION = column('collection', 'VARCHAR', 'The collection: a table of documents, or heart_rate');

const SYNC: readonly Table[] = [
  {
    name: 'sync.runs',
    comment: 'What one command or schedule started',
    columns: [
      column('run_id', 'VARCHAR', 'Identifier of the run'),
      column('kind', 'VARCHAR', 'backfill, nightly, sweep'),
      column('started_at', 'TIMESTAMP', 'Start, UTC'),
      column('ended_at', 'TIMESTAMP', 'End, UTC; null while it runs'),
      column('state', 'VARCHAR', 'running, complete, failed (some windows did), stopped (by its user)'),
      column('request', 'JSON', 'What was asked for: users, collections, days'),
    ],
  },
  {
    name: 'sync.windows',
    comment: 'A range of one collection of one account that was or is to be read as one job',
    columns: [
      column('run_id', 'VARCHAR', 'The run that planned it'),
      column('user_id', 'VARCHAR', 'The account'),
      COLLECTION,
      column('start_at', 'TIMESTAMP', 'First moment of the range; null where a collection has no dates'),
      column('end_at', 'TIMESTAMP', 'The moment after the range'),
      column(
        'requested_at',
        'TIMESTAMP',
        'The place of its first request in the order of all requests: near UTC, but never a moment to reckon with',
      ),
      column('read_at', 'TIMESTAMP', 'When its first request was sent, UTC, by the clock of this machine'),
      column('service_at', 'TIMESTAMP', 'The same by the clock of the service: the Date of its answer, UTC; null where it sent none'),
      column('route', 'VARCHAR', 'The path it was read from, where a collection has more than one'),
      column('committed_at', 'TIMESTAMP', 'When its last document was committed, UTC; where its account was not active, since when'),
      column('requests', 'BIGINT', 'Requests it took'),
      column('documents', 'BIGINT', 'Documents (heart rate: rows) that came'),
      column('removed', 'BIGINT', 'Stored documents (heart rate: rows) that it removed because the service no longer has them'),
      column('outcome', 'VARCHAR', 'complete, failed, not_offered, not_authorised, suspicious, stopped; null while planned'),
      column('reason', 'VARCHAR', 'Why, where it is not complete'),
      column('rows_by_day', 'JSON', 'Heart rate: how many rows came of each UTC day, from the first day of the range; null elsewhere'),
      column(
        'pages',
        'VARCHAR',
        'What tells the answer’s pages, and the documents of them, from all others; null where something that came was rejected, or cannot be told',
      ),
      column('rejected', 'BIGINT', 'Documents (heart rate: rows) that came and could not be stored; null where an earlier version read it'),
      column(
        'rejected_undated',
        'BIGINT',
        'Those of them whose day sync.rejected does not tell: what did not come of a day may be among them',
      ),
    ],
  },
  {
    name: 'sync.events',
    comment: 'The webhook events that were accepted, and what became of each (2.17)',
    columns: [
      column('received_at', 'TIMESTAMP', 'When it was accepted, UTC; no two events share it, so that it may be ahead of our clock'),
      column('event_time', 'TIMESTAMP', 'When the change happened, as the service says, UTC; null where that is unreadable'),
      column('event_type', 'VARCHAR', 'create, update, delete'),
      column('data_type', 'VARCHAR', 'The kind of data, as it came'),
      column('object_id', 'VARCHAR', 'Identifier of the document'),
      column('service_user_id', 'VARCHAR', 'The service’s own id of the person'),
      column('user_id', 'VARCHAR', 'The account, where known'),
      column('outcome', 'VARCHAR', 'stored, unchanged, removed, parked, unknown_user, unknown_type'),
      column('reason', 'VARCHAR', 'Why, where nothing was stored'),
      column('committed_at', 'TIMESTAMP', 'When its outcome was committed, UTC: its place in the order'),
      column('settled_at', 'TIMESTAMP', 'The same by our clock, UTC'),
      column(
        'account_since',
        'TIMESTAMP',
        'The since of its account in sync.accounts by which it got its outcome; null where none was known',
      ),
    ],
  },
  {
    name: 'sync.missed_events',
    comment: 'Changes that a sweep found and that no event had announced',
    columns: [
      column('found_at', 'TIMESTAMP', 'When the request that found the change was sent, UTC'),
      column('read_before_at', 'TIMESTAMP', 'The last reading before it, UTC: the change lies between'),
      column('user_id', 'VARCHAR', 'The account'),
      COLLECTION,
      column('id', 'VARCHAR', 'Identifier of the document'),
      column('event_type', 'VARCHAR', 'The event that should have come: create, update, delete'),
      column('missed_at', 'TIMESTAMP', 'When it was given up, UTC; null while it may still come'),
      column('noted_at', 'TIMESTAMP', 'When it was noted by our clock, UTC: from then on its event is waited for'),
    ],
  },
  {
    name: 'sync.subscriptions',
    comment: 'Our subscriptions at the service, as last seen (2.15)',
    columns: [
      column('event_type', 'VARCHAR', 'create, update, delete'),
      column('data_type', 'VARCHAR', 'The kind of data'),
      column('id', 'VARCHAR', 'The service’s id of it; null where there is none'),
      column('callback_url', 'VARCHAR', 'Where its events go'),
      column('state', 'VARCHAR', 'active, not_offered (the service does not know this kind), refused, lost, removed'),
      column('reason', 'VARCHAR', 'Why it is not active'),
      column('since', 'TIMESTAMP', 'Since when it is in this state without a break, UTC'),
      column('renewed_at', 'TIMESTAMP', 'When it was created or renewed last, UTC'),
      column('expiration_time', 'TIMESTAMP', 'When it ends unless it is renewed, UTC'),
    ],
  },
  {
    name: 'sync.rejected',
    comment: 'Documents that could not be stored, whole; removed when a good version comes, or when what brought them comes without them',
    columns: [
      column('user_id', 'VARCHAR', 'The account'),
      COLLECTION,
      column(
        'id',
        'VARCHAR',
        'Identifier of the document, of heart rate its timestamp; where it has no usable one sha256: and a hash of its text',
      ),
      column('reason', 'VARCHAR', 'What is wrong with it'),
      column('document', 'JSON', 'The document as it came'),
      column('fetched_at', 'TIMESTAMP', 'When the request that brought it was sent, UTC'),
      column('day', 'DATE', 'The day that it says it belongs to (heart rate: in UTC), where that can be read'),
      column('start_at', 'TIMESTAMP', 'First moment of the range that was asked for when it came; null where it was asked for by its id'),
      column('end_at', 'TIMESTAMP', 'The moment after that range'),
    ],
  },
  {
    name: 'sync.tombstones',
    comment: 'Documents that the service no longer has',
    columns: [
      column('user_id', 'VARCHAR', 'The account'),
      COLLECTION,
      column('id', 'VARCHAR', 'Identifier of the document'),
      column('removed_at', 'TIMESTAMP', 'When the request that found it gone was sent, UTC'),
    ],
  },
  {
    name: 'sync.suspicions',
    comment: 'What was seen once and counts only when it is seen again some time later; a contrary answer removes it',
    columns: [
      column('user_id', 'VARCHAR', 'The account'),
      COLLECTION,
      column(
        'kind',
        'VARCHAR',
        'refused (the service refused the collection), missing (a stored document was absent from a complete answer), unlisted (and its own route has it all the same)',
      ),
      column('object_id', 'VARCHAR', 'Identifier of the document; empty where it is about the whole collection'),
      column('first_seen_at', 'TIMESTAMP', 'When it was seen first, UTC, by the clock of this machine'),
    ],
  },
  {
    name: 'sync.drift',
    comment: 'What documents had that their declaration does not foresee; paths, never values',
    columns: [
      COLLECTION,
      column('path', 'VARCHAR', 'The field; * for all others where a document has over 100 or a collection over 1,000 of them'),
      column('kind', 'VARCHAR', 'unknown field, unknown value, missing, wrong type, bad format, out of range, disagreement'),
      column('documents', 'BIGINT', 'In how many stored documents it was seen'),
      column('first_seen_at', 'TIMESTAMP', 'When it was seen first, UTC'),
      column('last_seen_at', 'TIMESTAMP', 'When it was seen last, UTC'),
      column('example', 'VARCHAR', 'Where in a document it was seen, as JSON path; extra has there what has no column: extra->example'),
    ],
  },
  {
    name: 'sync.routes',
    comment: 'What the routes of the service answered',
    columns: [
      column('route', 'VARCHAR', 'Method and path, with {document_id} for an id'),
      column('last_status', 'BIGINT', 'The last status code'),
      column('last_200_at', 'TIMESTAMP', 'When it last answered 200, UTC'),
      column('service', 'VARCHAR', 'The base address of the service: what another one answered says nothing of this one'),
      column(
        'doubtful_since',
        'TIMESTAMP',
        'When it first answered 200 with nothing in it, where that alone does not show that it is there, UTC',
      ),
    ],
  },
  {
    name: 'sync.accounts',
    comment: 'The accounts and how they stand; never a token',
    columns: [
      column('user_id', 'VARCHAR', 'The name given with `account add`'),
      column('service_user_id', 'VARCHAR', 'The service’s own id of the person, where known'),
      column('state', 'VARCHAR', 'active, paused (by its user), parked (by an answer of the service), removed'),
      column('reason', 'VARCHAR', 'Why it is parked'),
      column('since', 'TIMESTAMP', 'Since when, UTC'),
    ],
  },
  {
    name: 'sync.consents',
    comment: 'What the people agreed to who signed in by an invitation',
    columns: [
      column('user_id', 'VARCHAR', 'The account'),
      column('at', 'TIMESTAMP', 'When the sign-in came to its end, UTC'),
      column(
        'scopes',
        'VARCHAR',
        'What was allowed, in the words of the service, separated by blanks; null where the service has not said it',
      ),
      column(
        'text_hash',
        'VARCHAR',
        'SHA-256 of the study’s text (RINGNECK_STUDY_TEXT) that was shown, hexadecimal; null where there was none',
      ),
      column('language', 'VARCHAR', 'The language of the page around it: en, de'),
      column(
        'withdrawn_at',
        'TIMESTAMP',
        'When it ended, UTC: it was withdrawn by the link for that, or the account was removed; null while it holds',
      ),
    ],
  },
  {
    name: 'sync.links',
    comment: 'The links by which people sign in or withdraw, each known by a hash of its secret alone',
    columns: [
      column('secret_hash', 'VARCHAR', 'SHA-256 of the secret in the link, hexadecimal'),
      column('kind', 'VARCHAR', 'connect (an invitation, removed once it was used), withdraw'),
      column('user_id', 'VARCHAR', 'The account'),
      column('created_at', 'TIMESTAMP', 'When it was made, UTC'),
      column('expires_at', 'TIMESTAMP', 'Until when it can be used, UTC; null: without an end'),
      column(
        'problem',
        'VARCHAR',
        'Who signed in by it and was refused last: enrolled (has another account), another (not the person of the account)',
      ),
      column('service_user_id', 'VARCHAR', 'The service’s own id of who has another account'),
    ],
  },
  {
    name: 'sync.meta',
    comment: 'Facts about this file',
    columns: [column('key', 'VARCHAR', 'Name of the fact'), column('value', 'VARCHAR', 'The fact')],
  },
];

/** Every table of ours, documents first, in the order of the specification. */
export function listTables(mappings: readonly Mapping[]): Table[] {
  return [
    ...mappings.flatMap(mapping => [documentTable(mapping), ...seriesTables(mapping), ...listTablesOf(mapping)]),
    HEART_RATE,
    PARTICIPANTS,
    ...SYNC,
  ];
}

/** The statement that makes a table, and those that comment on it and its columns. */
export function createTable(table: Table): string[] {
  const columns = table.columns.map(({ name, type }) => ({ name: bareName(name), type }));
  const width = Math.max(...columns.map(({ name }) => name.length));
  const lines = columns.map(({ name, type }) => `  ${name.padEnd(width)} ${type}`);
  return [`CREATE TABLE ${qualified(table.name)} (\n${lines.join(',\n')}\n)`, ...commentOn(table)];
}

export function commentOn(table: Table): string[] {
  return [
    `COMMENT ON TABLE ${qualified(table.name)} IS ${quoteText(table.comment)}`,
    ...table.columns.map(({ name, comment }) => `COMMENT ON COLUMN ${qualified(table.name)}.${quoteName(name)} IS ${quoteText(comment)}`),
  ];
}

/** The whole warehouse as one script: what `schema/warehouse.sql` holds. */
export function warehouseScript(mappings: readonly Mapping[]): string {
  const tables = listTables(mappings).map(table => `${createTable(table).join(';\n')};\n`);
  return `-- Generated by \`npm run generate\` from the declarations in schema/. Do not edit.\n\nCREATE SCHEMA sync;\n\n${tables.join('\n')}`;
}
