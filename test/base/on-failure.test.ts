import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLog, silentLog } from '../../src/base/log.ts';
import { createOnFailure, type OnFailureOptions, splitWords } from '../../src/base/on-failure.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
let files = 0;
const newPath = () => join(folder, `f${++files}`);

/** A program that appends what it was given to a file, as one line of JSON. */
const program = join(folder, 'note it.sh');
writeFileSync(
  program,
  `#!/bin/sh
printf '%s|%s|%s|%s|%s|%s\\n' "$RINGNECK_REASON" "$RINGNECK_USER" "$RINGNECK_COLLECTION" "$RINGNECK_MESSAGE" "$2" "$(env | grep -c -i 'token-of-ours')" >> "$1"
`,
);
chmodSync(program, 0o700);

function create(command: string | undefined, changes: Partial<OnFailureOptions> = {}) {
  const said: { msg: string; [key: string]: unknown }[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void said.push(JSON.parse(line)) } });
  const clock = { ms: 0 };
  const onFailure = createOnFailure({ command, env: { PATH: process.env.PATH }, log, now: () => clock.ms, ...changes });
  return { onFailure, said, clock };
}

test('the command gets the reason in its environment, and none of our secrets', async () => {
  const file = newPath();
  const env = {
    PATH: process.env.PATH,
    RINGNECK_CLIENT_SECRET: 'token-of-ours',
    RINGNECK_SECRET_KEY: 'token-of-ours',
    RINGNECK_USER: 'token-of-ours',
  };
  const { onFailure, said } = create(`"${program}" '${file}' "two words"`, { env });
  onFailure({ reason: 'account_parked', user: 'ada', message: 'the token is dead; $(touch nothing) `x` "y"' });
  onFailure({ reason: 'events_missed', user: 'ben', collection: 'sleep', message: 'a\u0000b' });
  await onFailure.close();
  expect(readFileSync(file, 'utf8')).toBe(
    'account_parked|ada||the token is dead; $(touch nothing) `x` "y"|two words|0\nevents_missed|ben|sleep|a b|two words|0\n',
  );
  expect(said).toEqual([]);
});

test('the same is said once an hour, for each reason, user and collection', async () => {
  const file = newPath();
  const { onFailure, clock } = create(`"${program}" ${file}`);
  const failure = { reason: 'run_failed', user: 'ada', collection: 'sleep' } as const;
  onFailure({ ...failure, message: '1' });
  clock.ms = 3_599_999;
  onFailure({ ...failure, message: '2' });
  onFailure({ ...failure, collection: 'session', message: '3' });
  onFailure({ ...failure, user: 'ben', message: '4' });
  onFailure({ ...failure, reason: 'events_missed', message: '5' });
  clock.ms = 3_600_000;
  onFailure({ ...failure, message: '6' });
  await onFailure.close();
  const messages = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split('|')[3]);
  expect(messages).toEqual(['1', '3', '4', '5', '6']);
});

test('a clock that was ahead at a failure, and is put right, keeps the next one from being said for no longer', async () => {
  const file = newPath();
  const { onFailure, clock } = create(`"${program}" ${file}`);
  const failure = { reason: 'account_parked', user: 'ada' } as const;
  const year = 365 * 86_400_000;
  clock.ms = 2 * year;
  onFailure({ ...failure, message: '1' });
  clock.ms = year;
  onFailure({ ...failure, message: '2' });
  await onFailure.close();
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2);
});

test('each withdrawal is said, and each refusal of an invitation that says something else', async () => {
  const file = newPath();
  const { onFailure } = create(`"${program}" ${file}`);
  for (const message of ['first', 'first', 'second']) {
    onFailure({ reason: 'consent_withdrawn', user: 'ada', message });
    onFailure({ reason: 'invitation_refused', user: 'ada', message });
  }
  await onFailure.close();
  const said = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split('|'));
  const of = (reason: string) => said.filter(([first]) => first === reason).map(([, , , message]) => message);
  // Withdrawals run side by side.
  expect([of('consent_withdrawn').sort(), of('invitation_refused')]).toEqual([
    ['first', 'first', 'second'],
    ['first', 'second'],
  ]);
});

test('a withdrawal that may have been told before is told once an hour', async () => {
  const file = newPath();
  const { onFailure, clock } = create(`"${program}" ${file}`);
  const withdrawal = { reason: 'consent_withdrawn', user: 'ada' } as const;
  onFailure({ ...withdrawal, message: '1' });
  onFailure({ ...withdrawal, message: '2', isRepeat: true });
  clock.ms = 3_600_000;
  onFailure({ ...withdrawal, message: '3', isRepeat: true });
  onFailure({ ...withdrawal, message: '4', isRepeat: true });
  onFailure({ ...withdrawal, message: '5' });
  await onFailure.close();
  const messages = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split('|')[3]);
  expect(messages.sort()).toEqual(['1', '3', '5']);
});

test('one runs at a time, a hundred wait, and the rest is counted in one line', async () => {
  const file = newPath();
  const lock = newPath();
  const busy = join(folder, 'busy.sh');
  writeFileSync(busy, `#!/bin/sh\nmkdir "$2" || echo overlap >> "$1"\necho "$RINGNECK_USER" >> "$1"\nrmdir "$2"\n`);
  chmodSync(busy, 0o700);
  const { onFailure, said } = create(`${busy} ${file} ${lock}`, { closeMs: 30_000 });
  for (let n = 1; n <= 120; n++) onFailure({ reason: 'account_parked', user: `u${n}`, message: '' });
  await onFailure.close();
  const ran = readFileSync(file, 'utf8').trim().split('\n');
  // The first runs at once and waits no longer.
  expect([ran.length, ran[0], ran[100]]).toEqual([101, 'u1', 'u101']);
  expect(said).toMatchObject([{ dropped: 19, level: 40 }]);
});

test.each([
  ['a command that is not there', join(folder, 'nothing-here'), { error: expect.stringContaining('ENOENT') }],
  ['a command that fails', 'sh -c "exit 3"', { code: 3 }],
  ['a command that ends by a signal', `sh -c 'kill -9 $$'`, { code: 'SIGKILL' }],
])('%s is a line in the log and nothing more', async (_, command, about) => {
  const { onFailure, said } = create(command);
  onFailure({ reason: 'run_failed', message: 'x' });
  onFailure({ reason: 'events_missed', message: 'y' });
  await onFailure.close();
  expect(said).toMatchObject([{ reason: 'run_failed', level: 40, ...about }, { reason: 'events_missed' }]);
});

test('parameters never reach the log: one may be an address with a secret', async () => {
  const { onFailure, said } = create('false https://hooks.example.org/not-for-logs');
  onFailure({ reason: 'run_failed', message: 'x' });
  await onFailure.close();
  expect(said).toMatchObject([{ command: 'false', code: 1 }]);
  expect(JSON.stringify(said)).not.toContain('not-for-logs');
});

test('a command that does not end is killed with what it started', async () => {
  const file = newPath();
  const { onFailure, said } = create(`sh -c "(sleep 0.4; touch ${file}) & sleep 60"`, { limitMs: 100 });
  onFailure({ reason: 'run_failed', message: 'x' });
  await onFailure.close();
  expect(said).toMatchObject([{ error: 'it did not end in 0.1 s and was killed' }]);
  await new Promise(resolve => setTimeout(resolve, 600));
  expect(existsSync(file)).toBe(false);
});

test('closing waits for a while and no longer, and then nothing more is run', async () => {
  const { onFailure, said } = create('sleep 3', { closeMs: 100 });
  onFailure({ reason: 'run_failed', message: 'x' });
  onFailure({ reason: 'run_failed', user: 'ada', message: 'x' });
  const start = performance.now();
  await onFailure.close();
  expect(performance.now() - start).toBeLessThan(2_000);
  expect(said).toMatchObject([{ not_run: 1 }]);
  onFailure({ reason: 'run_failed', user: 'ben', message: 'x' });
  await onFailure.close();
  expect(said).toHaveLength(2);
});

test('a withdrawal is told beside what runs, also once it is closing, and outlives us', async () => {
  const file = newPath();
  const slow = join(folder, 'slow.sh');
  writeFileSync(slow, `#!/bin/sh\n[ "$RINGNECK_REASON" = consent_withdrawn ] && echo "$RINGNECK_USER" >> "$1" || exec sleep 2\n`);
  chmodSync(slow, 0o700);
  const { onFailure } = create(`${slow} ${file}`, { closeMs: 0 });
  onFailure({ reason: 'run_failed', message: 'x' });
  onFailure({ reason: 'consent_withdrawn', user: 'ada', message: 'x' });
  await onFailure.close();
  onFailure({ reason: 'consent_withdrawn', user: 'ben', message: 'x' });
  await until('both are told', () => existsSync(file) && /^(ada|ben)\n(ada|ben)\n$/.test(readFileSync(file, 'utf8')));
});

test('a withdrawal that no command could tell says in the log that the study does not know', async () => {
  const { onFailure, said } = create(join(folder, 'nothing-here'));
  onFailure({ reason: 'consent_withdrawn', user: 'ada', message: 'x' });
  await onFailure.close();
  expect(said).toMatchObject([
    {
      account: 'ada',
      error: expect.stringContaining('ENOENT'),
      msg: 'the command of RINGNECK_ON_FAILURE failed: see to it that the study knows of this withdrawal',
    },
  ]);
});

test('without a command nothing is run', async () => {
  const { onFailure, said } = create(undefined);
  onFailure({ reason: 'run_failed', message: 'x' });
  await onFailure.close();
  expect(said).toEqual([]);
});

test.each<[string, string[]]>([
  ['mail -s ringneck ops@example.org', ['mail', '-s', 'ringneck', 'ops@example.org']],
  ['  notify  ', ['notify']],
  [`'/opt/my tools/notify' "it's" 'say "x"'`, ['/opt/my tools/notify', "it's", 'say "x"']],
  [`a"b c"'d e'f ""`, ['ab cd ef', '']],
  ['C:\\tools\\notify.exe a;b $HOME `x` | y', ['C:\\tools\\notify.exe', 'a;b', '$HOME', '`x`', '|', 'y']],
])('%s is parted into words', (command, words) => {
  expect(splitWords(command)).toEqual(words);
});

test.each([`notify "x`, `it's`, `"`, `a 'b' c'`])('%s has a quote that is not closed', command => {
  expect(() => createOnFailure({ command, env: {}, log: silentLog, now: () => 0 })).toThrow('a quote that is not closed');
});

test('a command without a word is refused', () => {
  for (const command of ['  ', '""']) {
    expect(() => createOnFailure({ command, env: {}, log: silentLog, now: () => 0 })).toThrow('RINGNECK_ON_FAILURE is empty');
  }
});
