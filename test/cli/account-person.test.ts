import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runHere } from './run-here.ts';

const folder = tempFolder();

test('a token of another person parks the account, so that two people are never mixed, until there is one of the same', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'data'), RINGNECK_SERVICE_URL: sandbox.url };
  const [ada, ben] = sandbox.people;
  const add = (token: string) => runHere(['account', 'add', 'ada'], { env, input: token });
  expect((await add(ada!.token)).stdout).toBe('ada active\n');
  const reason =
    'the token is that of another person: give one of the same, or add this one by another name; resume where it is the same person';
  expect(await add(ben!.token)).toEqual({ code: 0, stdout: `ada parked: ${reason}\n`, stderr: `warning: ${reason}\n` });
  expect(await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-02'], { env })).toMatchObject({ code: 1 });
  expect((await add(ada!.token)).stdout).toBe('ada active\n');

  // Its rows stay when it is removed.
  expect((await runHere(['account', 'remove', 'ada'], { env })).code).toBe(0);
  expect((await add(ben!.token)).stdout).toBe(`ada parked: ${reason}\n`);
  expect((await runHere(['account', 'resume', 'ada'], { env })).stdout).toBe('ada active\n');
});
