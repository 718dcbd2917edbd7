import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../src/app/free-port.ts';
import { settingsTable } from '../src/base/config.ts';
import { tempFolder } from './support/temp-folder.ts';
import { until } from './support/until.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = (name: string) => readFileSync(join(root, name), 'utf8');
const { parse } = createRequire(import.meta.resolve('@fastify/swagger'))('yaml') as { parse(text: string): never };

interface Service {
  environment: Record<string, unknown>;
  command: string | string[];
  [key: string]: unknown;
}
const { services, volumes } = parse(file('docker-compose.yml')) as { services: Record<'redis' | 'ringneck', Service>; volumes: object };

test('compose passes every setting, also as a file where it is a secret', () => {
  const rows = settingsTable().split('\n').slice(2);
  const names = rows.map(row => row.split(' ')[1]!);
  const files = rows.flatMap(row => /RINGNECK_\w+_FILE/.exec(row) ?? []).filter(name => name !== 'RINGNECK_QUEUE_URL_FILE');
  expect(names.length).toBeGreaterThan(25);
  expect(Object.keys(services.ringneck.environment).sort()).toEqual([...names, ...files].sort());
});

test('both containers have no rights but those they need, and write to their volumes only', () => {
  for (const service of Object.values(services)) {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], tmpfs: ['/tmp'] });
    expect(service.privileged ?? service.cap_add ?? service.network_mode).toBeUndefined();
  }
  expect([services.redis.volumes, services.ringneck.volumes, Object.keys(volumes)]).toEqual([
    ['redis:/data'],
    ['data:/data'],
    ['redis', 'data'],
  ]);
  expect([services.redis.user, services.redis.ports, services.ringneck.ports]).toEqual(['redis', undefined, ['127.0.0.1:8080:8080']]);
});

test('the image’s last stage has the built program, what it needs, and nothing else', () => {
  const { dockerfile_inline } = services.ringneck.build as { dockerfile_inline: string };
  const last = dockerfile_inline.slice(dockerfile_inline.lastIndexOf('FROM '));
  expect(last.match(/^(COPY|ADD) .*$/gm)).toEqual([
    'COPY --from=build /app/package.json /app/',
    'COPY --from=build /app/node_modules /app/node_modules',
    'COPY --from=build /app/dist /app/dist',
  ]);
  expect(last).toContain('USER node');
});

test('the image is built from an allow-list', () => {
  const lines = file('.dockerignore')
    .split('\n')
    .filter(line => line && !line.startsWith('#'));
  expect(lines[0]).toBe('*');
  expect(lines.filter(line => line.startsWith('!'))).toEqual([
    '!package.json',
    '!package-lock.json',
    '!tsconfig.json',
    '!schema',
    '!src',
    '!jobs',
    '!scripts',
  ]);
});

test('git ignores what is secret or a person’s', () => {
  const folder = tempFolder();
  execFileSync('git', ['init', '-q', folder]);
  writeFileSync(join(folder, '.gitignore'), file('.gitignore'));
  const ignored = [
    '.env',
    '.env.production',
    'ada.token',
    'people/ben.token',
    'data/warehouse.duckdb',
    'data-demo/secret.key',
    'data-study/queue/x',
    'copy/snapshot.duckdb',
    'copy/snapshot.duckdb.wal',
    'x/secret.key',
    'x/accounts.secret',
  ];
  const kept = [
    'src/base/secrets/secrets.ts',
    'src/service/tokens.ts',
    'docs/data-dictionary.md',
    'schema/warehouse.sql',
    'test/data.test.ts',
    '.env.example',
  ];
  for (const path of [...ignored, ...kept]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), '');
  }
  const found = execFileSync('git', ['-C', folder, 'ls-files', '--others', '--exclude-standard'], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
  expect(found.sort()).toEqual(['.gitignore', ...kept].sort());
});

const hasRedis = (() => {
  try {
    execFileSync('redis-server', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

test.runIf(hasRedis)('Redis asks for the password, which no list of processes shows', async () => {
  const folder = tempFolder();
  const port = await findFreePort();
  const [shell, flags, script] = services.redis.command as string[];
  const here = script!.replaceAll('$$', '$').replace('redis-server - ', `redis-server - --port ${port} --dir ${folder} `);
  const env = { ...process.env, REDISCLI_AUTH: 'a-password-of-compose' };
  const redis = spawn(shell!, [flags!, here], { env, stdio: 'ignore' });
  onTestFinished(() => void redis.kill());
  const ask = (auth: string, ...words: string[]) => {
    try {
      return execFileSync('redis-cli', ['-p', String(port), ...words], {
        env: { ...process.env, REDISCLI_AUTH: auth },
        stdio: ['ignore', 'pipe', 'ignore'],
        encoding: 'utf8',
      });
    } catch {
      return '';
    }
  };
  await until('Redis answers', () => ask('a-password-of-compose', 'ping') === 'PONG\n');
  expect(ask('another', 'ping')).toMatch(/NOAUTH/);
  expect(ask('a-password-of-compose', 'config', 'get', 'maxmemory-policy')).toContain('noeviction');
  expect(ask('a-password-of-compose', 'config', 'get', 'appendonly')).toContain('yes');
  expect(readFileSync(`/proc/${redis.pid}/cmdline`, 'utf8')).not.toContain('a-password-of-compose');
});
