import { existsSync, readFileSync } from 'node:fs';

export interface Recipe {
  question: string;
  sql: string;
}

/** A program that is tried within its checkout may lie elsewhere than beside its documentation. */
const PAGES = ['../../../docs/cookbook.md', '../../../../docs/cookbook.md'].map(path => new URL(path, import.meta.url));

/** The statements of docs/cookbook.md, each with the question that its chapter asks. */
export function readCookbook(): Recipe[] {
  const page = PAGES.find(path => existsSync(path));
  return page ? parseCookbook(readFileSync(page, 'utf8')) : [];
}

export function parseCookbook(page: string): Recipe[] {
  return page.split(/^## /m).flatMap(chapter => {
    const [title = ''] = chapter.split('\n', 1);
    const question = title.replace(/^\d+\.\s*/, '').replaceAll('`', '');
    return [...chapter.matchAll(/^```sql\n(.*?)^```/gms)].map(([, sql = '']) => ({ question, sql: sql.trim() }));
  });
}
