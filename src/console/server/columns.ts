import type { Questions } from '../../app/questions/questions.ts';
import { messageOf } from '../../base/errors.ts';
import { Refusal } from './refusal.ts';

type Columns = Awaited<ReturnType<Questions['ask']>>;

/** The answer of a query, whose values are of the type that is asked for, or null. */
export class Answered {
  readonly #columns: Columns;

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  get count(): number {
    return Object.values(this.#columns)[0]?.length ?? 0;
  }

  number(name: string, row = 0): number | null {
    const value = this.#columns[name]?.[row];
    return typeof value === 'number' ? value : null;
  }

  text(name: string, row = 0): string | null {
    const value = this.#columns[name]?.[row];
    return typeof value === 'string' ? value : null;
  }

  isTrue(name: string, row = 0): boolean {
    return this.#columns[name]?.[row] === true;
  }

  numbers(name: string, rows = this.rows()): (number | null)[] {
    return rows.map(row => this.number(name, row));
  }

  texts(name: string, rows = this.rows()): (string | null)[] {
    return rows.map(row => this.text(name, row));
  }

  /** The places of all rows, or of those that a test lets through. */
  rows(isWanted: (row: number) => boolean = () => true): number[] {
    return Array.from({ length: this.count }, (_, row) => row).filter(isWanted);
  }
}

/** Asks a fixed question. @throws Refusal where there is no snapshot, or it is damaged */
export async function askFor(questions: Questions, name: string, parameters = {}): Promise<Answered> {
  ensureSnapshot(questions);
  const columns = await questions.ask(name, parameters).catch(error => {
    const message = messageOf(error);
    throw message.startsWith('cannot open ')
      ? new Refusal(500, message, 'Where the file is damaged, ringneck snapshot makes it anew.')
      : error;
  });
  return new Answered(columns);
}

export function ensureSnapshot({ stamp }: Pick<Questions, 'stamp'>): void {
  if (stamp !== undefined) return;
  throw new Refusal(404, 'There is no snapshot yet.', 'While ringneck up runs it is made by itself; ringneck snapshot makes it at once.');
}
