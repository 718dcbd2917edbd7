import { readFileSync } from 'node:fs';
import { quoteText } from '../sql.ts';

/** The queries of `schema/queries/assistants/`. */
export type AssistantsQuery = 'people' | 'night' | 'coverage';

/** One of them, with what it is asked about; what is not told is NULL. */
export function writeQuery(name: AssistantsQuery, parameters: Readonly<Record<string, string | undefined>> = {}): string {
  const sql = readFileSync(new URL(`../../../schema/queries/assistants/${name}.sql`, import.meta.url), 'utf8');
  return sql.replace(/\$(\w+)/g, (_, parameter: string) => {
    const value = parameters[parameter];
    return value === undefined ? 'NULL::VARCHAR' : quoteText(value);
  });
}
