import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** The folder of Postgres' programs: on the PATH, or where Debian has them. */
function findPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return [...(process.env.PATH ?? '').split(delimiter), ...versions.map(version => join(debian, version, 'bin'))].find(folder =>
    ['initdb', 'postgres', 'psql'].every(name => existsSync(join(folder, name))),
  );
}

const postgres = findPostgres();
export const hasPostgres = postgres !== undefined;

export interface TestPostgres {
  /** The folder of its socket, and of all that it has. */
  folder: string;
  /** Runs SQL as its superuser. */
  psql(database: string, sql: string): string;
  stop(): void;
  start(): void;
}

/** A Postgres of its own at a socket in a temporary folder, gone with this process. Root may not run one. */
export function startPostgres(): TestPostgres {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ringneck-postgres-')));
  const as = process.getuid?.() === 0 ? ids('postgres') : undefined;
  if (as) chownSync(folder, as.uid, as.gid);
  const run = (name: string, ...parameters: string[]) =>
    execFileSync(join(postgres ?? '', name), parameters, { ...as, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });
  const data = join(folder, 'data');
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
  const options = `-k ${folder} -c listen_addresses= -c fsync=off -c full_page_writes=off -c autovacuum=off -c max_connections=200 -c shared_buffers=32MB`;
  const server: TestPostgres = {
    folder,
    psql: (database, sql) => run('psql', '-h', folder, '-U', 'postgres', '-d', database, '-v', 'ON_ERROR_STOP=1', '-Atqc', sql),
    start: () => void run('pg_ctl', '-D', data, '-o', options, '-l', join(folder, 'log'), '-w', 'start'),
    stop: () => void run('pg_ctl', '-D', data, '-m', 'fast', '-w', 'stop'),
  };
  server.start();
  process.once('exit', () => {
    try {
      server.stop();
    } catch {}
    rmSync(folder, { recursive: true, force: true });
  });
  return server;
}

function ids(user: string): { uid: number; gid: number } {
  const find = (option: string) => Number(execFileSync('id', [option, user], { encoding: 'utf8' }));
  return { uid: find('-u'), gid: find('-g') };
}
