import { resources } from '../../../schema/index.ts';
import type { Settings } from '../../base/config.ts';
import { didYouMean } from '../../base/did-you-mean.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import { Mutex } from '../../base/mutex.ts';
import { printable } from '../../base/printable.ts';
import { type AssistantsQuery, writeQuery } from '../../warehouse/readers/assistants-queries.ts';
import type { Catalogue, CatalogueEntry } from '../../warehouse/readers/catalogue.ts';
import { writeExample } from '../../warehouse/readers/example.ts';
import { type Join, listJoins } from '../../warehouse/readers/joins.ts';
import { findNamed } from '../catalogue/find-named.ts';
import { getSource, type Source } from '../find-source.ts';
import { OnePerson } from '../person-files/one-person.ts';
import type { Frame, Most } from './frames.ts';
import { oneLine } from './one-line.ts';
import type { Limits } from './query-process.ts';
import { QueryRunner } from './query-runner.ts';

export interface AnswersParts {
  settings: Settings;
  /** The only person of whom anything is to be seen; without a name everybody. */
  user?: string | undefined;
  limits: Limits;
}

/** The rows of one statement, as far as they are given. */
export interface Result {
  columns: { name: string; type: string }[];
  /** Each a JSON array. */
  rows: string[];
  /** Whether there are more than these. */
  cut: boolean;
}

export interface Answer {
  /** Of which moment the data is, ISO 8601. */
  at: string;
  /** One for each statement. */
  results: Result[];
}

/** A table, view or macro, and what a first question to it may be. */
export type Description = CatalogueEntry & { joins: readonly Join[]; example: string | null };

/** What somebody who is told of no file may ask of a warehouse, one question after the other. */
export class Answers {
  readonly #user: string | undefined;
  readonly #person: OnePerson | undefined;
  readonly #runner: QueryRunner;
  readonly #turns = new Mutex();

  constructor({ settings, user, limits }: AnswersParts) {
    this.#user = user;
    const person = user === undefined ? undefined : new OnePerson(settings, user);
    this.#person = person;
    const findFile = (signal: AbortSignal): Promise<Source> => (person ? person.find(signal) : getSource(settings, signal));
    this.#runner = new QueryRunner({ settings, limits, findFile });
  }

  /**
   * Runs SQL in a process of its own.
   * @throws RingneckError with what DuckDB says, in one line
   */
  query(sql: string, most: Most, signal: AbortSignal): Promise<Answer> {
    return this.#inTurn(signal, async () => {
      const results: Result[] = [];
      try {
        const { at } = await this.#runner.ask({ sql, as: { upTo: most } }, frame => void take(results, frame), signal);
        return { at, results };
      } catch (error) {
        if (!(error instanceof RingneckError)) throw error;
        throw new RingneckError(printable(oneLine(error.message)), error.exitCode, { cause: error });
      }
    });
  }

  /** One of our own questions; where there is one person alone it is about them. */
  ask(name: AssistantsQuery, parameters: Readonly<Record<string, string | undefined>>, most: Most, signal: AbortSignal): Promise<Answer> {
    return this.query(writeQuery(name, this.#user === undefined ? parameters : { ...parameters, user: this.#user }), most, signal);
  }

  /** The tables, views and macros that can be asked. */
  catalogue(signal: AbortSignal): Promise<Catalogue> {
    return this.#inTurn(signal, () => this.#runner.readCatalogue(signal));
  }

  #inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(() => (this.#person ? this.#person.read(work, signal) : work()));
  }

  /** @throws UsageError with what was probably meant */
  async describe(name: string, signal: AbortSignal): Promise<Description> {
    const { entries, person } = await this.catalogue(signal);
    const entry = findNamed(entries, name);
    if (entry) {
      const joins = listJoins(resources).filter(({ from, to }) => from === entry.name || to === entry.name);
      return { ...entry, joins, example: writeExample(entry, person ?? undefined) ?? null };
    }
    const nearest = didYouMean(
      name,
      entries.map(one => one.name),
    );
    throw new UsageError(`there is no table, view or macro ${JSON.stringify(name)}${nearest ? `: did you mean ${nearest}?` : ''}`);
  }

  async close(): Promise<void> {
    await this.#runner.end();
    this.#person?.close();
  }
}

function take(results: Result[], frame: Frame): void {
  if (frame.kind === 'columns') results.push({ columns: frame.columns.map(({ name, type }) => ({ name, type })), rows: [], cut: false });
  const last = results.at(-1);
  if (frame.kind === 'rows') last?.rows.push(...frame.rows);
  if (frame.kind === 'cut' && last) last.cut = true;
}
