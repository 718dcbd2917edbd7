import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runTask } from '../child.ts';
import { type Bench, median, type Row } from '../row.ts';
import type { Cost } from '../task.ts';

const LIMIT_SECONDS = 0.5;
const MONTH = `user_id = 'user-007' AND day BETWEEN '2025-03-01' AND '2025-03-31'`;

/** What somebody asks of one person and a month, with the number of rows of the answer. */
const QUESTIONS: Record<string, [sql: string, rows: number]> = {
  met_minutes: [`SELECT day, class, sum(met_minutes) FROM met_minutes WHERE ${MONTH} GROUP BY day, class`, 31 * 6],
  daily: [`SELECT day, average_hrv, steps, night_missing FROM daily WHERE ${MONTH}`, 31],
  baselines: [`SELECT day, value, z_28 FROM baselines WHERE ${MONTH} AND metric = 'average_hrv'`, 31],
};

/** Questions through the views, each from opening the file to its answer, over samples as a snapshot sorts them and as days come in. */
export async function measureQuestions(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const order of ['user', 'day'] as const) {
    const path = join(bench.newFolder(), 'data', 'warehouse.duckdb');
    mkdirSync(join(path, '..'));
    const { samples } = await runTask<{ samples: number }>('fill-samples', { path, years: bench.questionYears, order });
    for (const [view, [question, expected]] of Object.entries(QUESTIONS)) {
      const seconds: number[] = [];
      for (let round = 0; round < bench.rounds; round++) {
        const { cost, result } = await runTask<{ cost: Cost; result: number }>('ask', { path, question });
        if (result !== expected) throw new Error(`${view}: ${result} rows instead of ${expected}`);
        seconds.push(cost.wall);
      }
      bench.say(`questions, by ${order}, ${view}: ${seconds.map(each => each.toFixed(3)).join(', ')} s`);
      rows.push({
        what: `a question of one person and a month through ${view}, from opening the file to the answer`,
        against: `${(samples / 1e6).toFixed(0)} M samples, ${order === 'user' ? 'sorted as in a snapshot' : 'as days came in'}`,
        limit: `${LIMIT_SECONDS} s`,
        measured: `${median(seconds).toFixed(2)} s (longest ${Math.max(...seconds).toFixed(2)} s)`,
        holds: median(seconds) <= LIMIT_SECONDS,
      });
    }
  }
  return rows;
}
