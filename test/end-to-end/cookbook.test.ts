import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findDayNumber } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { App } from '../../src/app/app.ts';
import { commandsOf } from '../../src/app/commands.ts';
import { readPeopleFile } from '../../src/app/people-file.ts';
import { writeResult } from '../../src/app/query/write-result.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { openQueries, type Queries } from '../../src/warehouse/readers/query.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';

const PAGE = fileURLToPath(new URL('../../docs/cookbook.md', import.meta.url));
const YEAR = { from: '2025-01-01', to: '2025-12-31' };
const folder = tempFolder();
let sandbox: Sandbox;
let reader: Queries;

/** What `ringneck demo --to 2025-12-31` has when it asks its questions. */
beforeAll(async () => {
  sandbox = await startSandbox({ count: 3, seed: 7, ...YEAR });
  const app = await App.open({
    isAlone: true,
    log: silentLog,
    settings: readSettings({ RINGNECK_DATA: folder, RINGNECK_SERVICE_URL: sandbox.url }),
  });
  try {
    const commands = commandsOf(() => app);
    for (const { name, token } of sandbox.people) await commands.addAccount({ name, token });
    const report = await commands.backfill(
      { ...YEAR, refresh: false, plan: false },
      { emit: () => {}, signal: new AbortController().signal },
    );
    expect(report.failures).toEqual([]);
    await commands.importParticipants(readPeople());
    await commands.snapshot({});
  } finally {
    await app.close();
  }
  reader = await openQueries(join(folder, 'snapshot.duckdb'));
}, 300_000);

afterAll(async () => {
  reader?.close();
  await sandbox?.close();
});

/** The file that the page has its reader write. */
function readPeople() {
  const file = join(folder, 'people.csv');
  writeFileSync(file, /```csv\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8'))![1]!);
  return readPeopleFile(file, { withTokens: false });
}

const ANSWERED = /```sql\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```\n/g;

test('every question of the cookbook has the answer that the page shows', async () => {
  const page = readFileSync(PAGE, 'utf8');
  const blocks = [...page.matchAll(ANSWERED)];
  expect(blocks.length).toBeGreaterThanOrEqual(17);
  expect(page.match(/```sql/g)).toHaveLength(blocks.length);
  let answered = page;
  for (const [block, sql] of blocks) {
    const answer = await print(sql!);
    expect(answer.split('\n').length, sql).toBeGreaterThan(2);
    answered = answered.replace(block, () => `\`\`\`sql\n${sql}\`\`\`\n\n\`\`\`text\n${answer}\n\`\`\`\n`);
  }
  // `npx vitest run test/end-to-end/cookbook.test.ts -u` writes the answers of today into the page.
  await expect(answered).toMatchFileSnapshot(PAGE);
});

/** The documents of a person as the service gives them. */
function documentsOf(name: string, resource: string): WireDocument[] {
  const { userId } = sandbox.people.find(person => person.name === name)!;
  return daysOfYear().flatMap(day => sandbox.source.documents(userId, resource, day));
}

function daysOfYear(): string[] {
  return Array.from({ length: 365 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
}

/** Monday is 0: the first day of 1970 was a Thursday. */
const weekday = (day: string) => (findDayNumber(day)! + 3) % 7;

/** The night of each day: these people have one long sleep at most. */
function longSleeps(name: string): WireDocument[] {
  const nights = documentsOf(name, 'sleep').filter(({ type }) => type === 'long_sleep');
  expect(new Set(nights.map(({ day }) => day)).size).toBe(nights.length);
  return nights;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test('the correlation of stress and heart rate variability is the one computed from the documents', async () => {
  const weekOf = (day: string) => findDayNumber(day)! - weekday(day);
  const first = findDayNumber('2025-01-06')!;
  const last = findDayNumber('2025-12-22')!;
  const nights = longSleeps('ada');
  const stress = documentsOf('ada', 'daily_stress');
  const weeks: { hrv: number; stressful: number }[] = [];
  for (let week = first; week <= last; week += 7) {
    const summaries = stress.filter(({ day, day_summary }) => weekOf(day as string) === week && typeof day_summary === 'string');
    const hrv = nights.filter(({ day, average_hrv }) => weekOf(day as string) === week && typeof average_hrv === 'number');
    if (summaries.length < 5) continue;
    weeks.push({
      hrv: mean(hrv.map(({ average_hrv }) => average_hrv as number)),
      stressful: summaries.filter(({ day_summary }) => day_summary === 'stressful').length,
    });
  }
  const hrv = mean(weeks.map(week => week.hrv));
  const stressful = mean(weeks.map(week => week.stressful));
  const sum = (of: (week: (typeof weeks)[number]) => number) => weeks.reduce((total, week) => total + of(week), 0);
  const both = sum(week => (week.hrv - hrv) * (week.stressful - stressful));
  const r = both / Math.sqrt(sum(week => (week.hrv - hrv) ** 2) * sum(week => (week.stressful - stressful) ** 2));
  const answer = (await print(sqlOf('## 1.'))).split('\n').find(line => line.startsWith('ada'));
  expect(answer!.split(/ +/).slice(0, 3)).toEqual(['ada', String(weeks.length), r.toFixed(2)]);
});

test('social jetlag is the one computed from the documents', async () => {
  const middles = longSleeps('ben').flatMap(({ day, bedtime_start, bedtime_end }) => {
    const [start, end] = [bedtime_start as string, bedtime_end as string];
    // A night over a change of the clock or a flight is left out.
    if (start.slice(-6) !== end.slice(-6)) return [];
    const middle = (Date.parse(start) + Date.parse(end)) / 2;
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(end)!;
    const local = middle + (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
    const secondsAfterMidnight = local / 1000 - findDayNumber(day as string)! * 86_400;
    return [
      { free: weekday(day as string) >= 5, at: secondsAfterMidnight > 43_200 ? secondsAfterMidnight - 86_400 : secondsAfterMidnight },
    ];
  });
  const at = (free: boolean) => mean(middles.filter(middle => middle.free === free).map(middle => middle.at));
  const clock = (seconds: number) => {
    const minutes = Math.round(seconds / 60);
    return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`;
  };
  const answer = (await print(sqlOf('## 4.'))).split('\n').find(line => line.startsWith('ben'));
  expect(answer!.split(/ +/)).toEqual(['ben', clock(at(false)), clock(at(true)), clock(at(true) - at(false))]);
});

test('the heart through the day counts each measurement once around a flight, by the activity that began last', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  try {
    // Six hours west, and back on the next day: from 4:00 to 10:00 UTC of the 2nd there is no activity, on the 3rd there are two.
    const starts = ['2025-09-01T04:00:00+00:00', '2025-09-02T04:00:00-06:00', '2025-09-03T04:00:00+00:00'];
    await store(
      warehouse,
      'daily_activity',
      starts.map(timestamp => ({ ...ACTIVITY, id: timestamp, day: timestamp.slice(0, 10), timestamp })),
    );
    const row = (timestamp: string, bpm: number) => ({ timestamp, timestamp_unix: Date.parse(timestamp), bpm, source: 'awake' });
    await warehouse.storeHeartRate({
      ...{ userId: 'ann', from: Date.UTC(2025, 8, 1) * 1000, to: Date.UTC(2025, 8, 5) * 1000, requestedAt: warehouse.clock.next() },
      rows: [row('2025-09-02T06:00:00.000+00:00', 60), row('2025-09-02T14:00:00.000+00:00', 70), row('2025-09-03T08:00:00.000+00:00', 80)],
    });
    const answer = (await rows(warehouse, sqlOf('## 16.').replace(';', ''))) as {
      hour: number;
      workdays: number;
      weekends: number | null;
    }[];
    expect(answer.map(({ hour, workdays, weekends }) => [hour, workdays, weekends])).toEqual([
      [6, 60, null],
      [8, 75, null],
    ]);
  } finally {
    await warehouse.close();
  }
});

/** The first statement under a heading. */
function sqlOf(heading: string): string {
  const page = readFileSync(PAGE, 'utf8');
  return /```sql\n([\s\S]*?)```/.exec(page.slice(page.indexOf(heading)))![1]!;
}

async function print(sql: string): Promise<string> {
  let text = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  await writeResult(await reader.query(sql), 'table', sink);
  return text
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n')
    .trimEnd();
}
