import { readdirSync, readFileSync } from 'node:fs';

export interface Query {
  /** What it answers. */
  question: string;
  sql: string;
}

const FOLDER = new URL('../../../schema/queries/', import.meta.url);

/** What an analyst would ask first, as the files of `schema/queries/` have it in their order: the question is the first line of each. */
export function readQueries(): Query[] {
  const files = readdirSync(FOLDER).filter(file => file.endsWith('.sql'));
  return files.sort().map(file => {
    const [head = '', ...lines] = readFileSync(new URL(file, FOLDER), 'utf8').trimEnd().split('\n');
    return { question: head.replace(/^-- /, ''), sql: lines.join('\n') };
  });
}
