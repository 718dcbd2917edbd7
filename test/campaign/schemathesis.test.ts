import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type SandboxProcess, startSandboxProcess } from '../support/sandbox-process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { seed } from './choice.ts';

/** Last run with 4.32.5 (`pip install schemathesis==4.32.5`). */
const PROGRAM = 'schemathesis';
const isThere = spawnSync(PROGRAM, ['--version']).status === 0;

/** No schema can say that a start lies before its end, whose a token is, or that a callback answers. */
const UNSAYABLE = 'positive_data_acceptance';

const folder = tempFolder();

interface Operation {
  operationId: string;
}

/** A document of each kind that has any, so that its own route has something to answer with. */
async function chooseDocuments({ url, people: [ada] }: SandboxProcess): Promise<string> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, { get?: Operation }> };
  const tables: string[] = [];
  for (const [path, { get }] of Object.entries(paths)) {
    const collection = paths[path.replace('/{document_id}', '')];
    if (!path.endsWith('/{document_id}') || !collection?.get || !get) continue;
    const answer = await fetch(`${url}${path.replace('/{document_id}', '')}?start_date=2025-01-01&end_date=2025-01-31`, {
      headers: { authorization: `Bearer ${ada!.token}` },
    });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    if (data[0])
      tables.push(`[[operations]]\ninclude-operation-id = "${get.operationId}"\nparameters = { document_id = "${data[0].id}" }\n`);
  }
  return tables.join('\n');
}

/** Runs it against the service; its report where something is not as the document says. */
async function examine(name: string, service: SandboxProcess, headers: readonly string[]): Promise<string> {
  const config = join(folder, `${name}.toml`);
  writeFileSync(config, await chooseDocuments(service));
  const args = ['--config-file', config, 'run', `${service.url}/openapi.json`, '--checks', 'all', '--exclude-checks', UNSAYABLE];
  const options = ['--max-examples', '10', '--seed', String(seed), '--continue-on-failure', '--no-color'];
  const { status, stdout, stderr } = spawnSync(PROGRAM, [...args, ...options, ...headers.flatMap(header => ['-H', header])], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 100_000_000,
  });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

const UNLIMITED = ['--rate-limit', '1000000/300', '--app-rate-limit', '1000000/300', '--allow-callback', '127.0.0.0/8'];

describe.skipIf(!isThere)(`/openapi.json is true of its service, rate limits out of reach, seed ${seed}`, () => {
  test.each([
    ['all', []],
    ['specification-only', ['--specification-only']],
  ])('%s: with the token of a person and the secret of the client, and without', async (name, options) => {
    const service = await startSandboxProcess(join(folder, name), ...UNLIMITED, ...options);
    const { people, client } = service;
    const secrets = [`Authorization: Bearer ${people[0]!.token}`, `x-client-id: ${client.id}`, `x-client-secret: ${client.secret}`];
    expect(await examine(name, service, secrets)).toBe('');
    expect(await examine(`${name}-stranger`, service, [])).toBe('');
  });
});
