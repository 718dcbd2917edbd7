import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startLiteralService } from '../support/literal-service.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('where the service does not say whose token it is, its giver is told how to say it', async () => {
  // Without the route for it.
  const service = await startLiteralService('daily_readiness');
  onTestFinished(() => service.close());
  const env = { RINGNECK_DATA: join(folder, 'data'), RINGNECK_SERVICE_URL: service.url };
  const add = (name: string, ...args: string[]) => runHere(['account', 'add', name, ...args], { env, input: `token-of-${name}` });
  expect(await add('ada')).toEqual({
    code: 0,
    stdout: 'ada active\n',
    stderr: 'ada: the service does not say whose token it is. Its events are known once you do: ringneck account map ada ID\n',
  });
  expect(await runHere(['account', 'map', 'ada', 'p-1'], { env })).toMatchObject({ code: 0 });
  const ben = await add('ben', '--service-user', 'p-2');
  expect([ben.code, ben.stderr]).toEqual([0, expect.not.stringContaining('account map')]);
});
