import { expect, test } from 'vitest';
import { RingneckError, TryLaterError, UsageError } from '../../../src/base/errors.ts';
import { ServiceError, type ServiceErrorKind } from '../../../src/client/error.ts';
import { ATTEMPTS, decide } from '../../../src/sync/verdicts/outcome.ts';

const error = (kind: ServiceErrorKind, details = {}) => new ServiceError(kind, '/v2/usercollection/sleep', 'answered so', details);
const reason = 'GET /v2/usercollection/sleep: answered so';

/** What is done at the first attempt, and at the last. */
const table: [ServiceErrorKind, object, object][] = [
  ['unauthorized', { do: 'park' }, { do: 'park' }],
  ['forbidden', { do: 'park' }, { do: 'park' }],
  ['not_found', { do: 'confirm' }, { do: 'confirm' }],
  ['rate_limited', { do: 'wait', ms: 30_000 }, { do: 'wait', ms: 30_000 }],
  ['unavailable', { do: 'retry' }, { do: 'finish', outcome: 'failed', reason }],
  ['malformed', { do: 'retry' }, { do: 'finish', outcome: 'failed', reason }],
  ['too_large', { do: 'retry' }, { do: 'finish', outcome: 'failed', reason }],
  ['invalid_request', { do: 'finish', outcome: 'failed', reason }, { do: 'finish', outcome: 'failed', reason }],
  ['endless', { do: 'finish', outcome: 'failed', reason }, { do: 'finish', outcome: 'failed', reason }],
  ['redirected', { do: 'retry' }, { do: 'finish', outcome: 'failed', reason }],
  ['stopped', { do: 'finish', outcome: 'stopped', reason }, { do: 'finish', outcome: 'stopped', reason }],
];

test.each(table)('%s', (kind, first, last) => {
  expect(decide(error(kind), 0)).toEqual(first);
  expect(decide(error(kind), 2)).toEqual(last);
});

test('the table knows every kind', () => {
  const kinds: Record<ServiceErrorKind, true> = {
    unauthorized: true,
    forbidden: true,
    not_found: true,
    rate_limited: true,
    unavailable: true,
    malformed: true,
    too_large: true,
    invalid_request: true,
    endless: true,
    redirected: true,
    stopped: true,
  };
  expect(table.map(([kind]) => kind).sort()).toEqual(Object.keys(kinds).sort());
});

test('a limit is waited for as long as the service says, however often', () => {
  expect(decide(error('rate_limited', { retryAfterMs: 61_000 }), 0)).toEqual({ do: 'wait', ms: 61_000 });
  expect(decide(error('rate_limited', { retryAfterMs: 0 }), 99)).toEqual({ do: 'wait', ms: 0 });
});

test('a service that says for how long it is away is waited for, however often', () => {
  expect(decide(error('unavailable', { status: 503, retryAfterMs: 600_000 }), 2)).toEqual({ do: 'wait', ms: 600_000 });
  expect(decide(error('unavailable', { status: 503, retryAfterMs: 0 }), 99)).toEqual({ do: 'wait', ms: 1_000 });
});

test('there are three attempts', () => {
  expect(ATTEMPTS).toBe(3);
  expect([0, 1, 2, 3].map(made => decide(error('unavailable'), made).do)).toEqual(['retry', 'retry', 'finish', 'finish']);
});

test('an error of our own, as of the warehouse, is tried again and then failed with its text', () => {
  expect(decide(new Error('conflict'), 0)).toEqual({ do: 'retry' });
  expect(decide(new TryLaterError('busy'), 0)).toEqual({ do: 'retry' });
  expect(decide(new Error('conflict'), 2)).toEqual({ do: 'finish', outcome: 'failed', reason: 'conflict' });
  expect(decide('thrown text', 2)).toEqual({ do: 'finish', outcome: 'failed', reason: 'thrown text' });
});

test('what tells a person what to do, as a full disk or a wrong key, is not tried again', () => {
  expect(decide(new RingneckError('the disk is almost full'), 0)).toEqual({
    do: 'finish',
    outcome: 'failed',
    reason: 'the disk is almost full',
  });
  expect(decide(new UsageError('the key is missing'), 0)).toEqual({ do: 'finish', outcome: 'failed', reason: 'the key is missing' });
});
