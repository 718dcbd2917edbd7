import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTask } from '../child.ts';
import { writeLimitSql } from '../limit-sql.ts';
import { hashTables, PAGE_SIZE } from '../pipeline.ts';
import { answerFile } from '../read-json.ts';
import { answersOf, ensureRecording, readRecorded } from '../recording.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const COLLECTION = 'daily_activity';
const LIMIT = { cpu: 1.25, wall: 1.8 };

/** From JSON in memory to committed rows, against read_json over the same bytes in files. */
export async function measureWritePath(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, [COLLECTION]);
  const ours: Cost[] = [];
  const limit: Cost[] = [];
  for (let round = 0; round < bench.rounds; round++) {
    const folder = bench.newFolder();
    const answers = join(folder, 'answers');
    mkdirSync(join(answers, COLLECTION), { recursive: true });
    for (const user of recording.users) {
      answersOf(readRecorded(recording, user, COLLECTION), PAGE_SIZE).forEach((body, page) => {
        writeFileSync(join(answers, COLLECTION, answerFile(user, page)), body);
      });
    }
    const paths = { ours: join(folder, 'ours', 'warehouse.duckdb'), limit: join(folder, 'limit.duckdb') };
    ours.push(await runTask('store-answers', { recording, collection: COLLECTION, path: paths.ours, pageSize: PAGE_SIZE }));
    limit.push(await runTask('read-json', { path: paths.limit, sql: writeLimitSql([COLLECTION], answers) }));
    ensureEqual('write path', await hashTables(paths.ours, [COLLECTION]), await hashTables(paths.limit, [COLLECTION]));
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
