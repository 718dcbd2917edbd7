import { expect, test } from 'vitest';
import { TimeoutError } from '../../src/base/timeout.ts';
import { isPassing } from '../../src/queue/environment-errors.ts';
import { QueueUnavailable } from '../../src/queue/queues.ts';

const withCode = (code: string) => Object.assign(new Error('no'), { code });

test.each([
  new Error("READONLY You can't write against a read only replica. script: 1, on @user_script:1."),
  new Error('LOADING Redis is loading the dataset in memory'),
  new Error("OOM command not allowed when used memory > 'maxmemory'."),
  new Error('MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.'),
  new Error('connect ECONNREFUSED 127.0.0.1:6379'),
  new Error('Connection is closed.'),
  new QueueUnavailable('the queue gives no answer; try again'),
  new TimeoutError('no answer in 1.5 s'),
  withCode('ENOSPC'),
  withCode('53100'),
  new Error('the job could not be added', { cause: new Error('READONLY You can not write') }),
])('an error of the queue’s machine passes: %s', error => {
  expect(isPassing(error)).toBe(true);
});

test.each([new TypeError('x is not a function'), new Error('Custom Id cannot contain :'), withCode('22P05'), 'OOM', undefined])(
  'an error of what is asked of the queue does not pass: %s',
  error => {
    expect(isPassing(error)).toBe(false);
  },
);
