import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTask } from '../child.ts';
import { hashTables, PAGE_SIZE } from '../pipeline.ts';
import { answerFile } from '../read-json.ts';
import { answersOf, ensureRecording, readRecorded } from '../recording.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const TABLES = ['daily_activity', 'daily_activity_met'];
const LIMIT = { cpu: 1.25, wall: 1.8 };

/** From JSON in memory to committed rows, against read_json over the same bytes in files. */
export async function measureWritePath(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, ['daily_activity']);
  const ours: Cost[] = [];
  const limit: Cost[] = [];
  for (let round = 0; round < bench.rounds; round++) {
    const folder = bench.newFolder();
    const answers = join(folder, 'answers');
    mkdirSync(answers);
    for (const user of recording.users) {
      answersOf(readRecorded(recording, user, 'daily_activity'), PAGE_SIZE).forEach((body, page) => {
        writeFileSync(join(answers, answerFile(user, page)), body);
      });
    }
    const paths = { ours: join(folder, 'ours', 'warehouse.duckdb'), limit: join(folder, 'limit.duckdb') };
    ours.push(await runTask('store-answers', { recording, path: paths.ours, pageSize: PAGE_SIZE }));
    limit.push(await runTask('read-json', { path: paths.limit, files: join(answers, '*.json') }));
    ensureEqual('write path', await hashTables(paths.ours, TABLES), await hashTables(paths.limit, TABLES));
    bench.say(`write path ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}`);
  }
  return [
    {
      what: `write path: daily_activity of ${bench.years} user-years, JSON pages in memory to committed rows`,
      against: 'DuckDB’s `read_json` on the same bytes into the same tables',
      limit: `CPU ${LIMIT.cpu}×, wall ${LIMIT.wall}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}, wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'cpu') <= LIMIT.cpu && ratioOf(ours, limit, 'wall') <= LIMIT.wall,
    },
  ];
}
