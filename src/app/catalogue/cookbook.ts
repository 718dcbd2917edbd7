import { existsSync, readFileSync } from 'node:fs';

export interface Recipe {
  question: string;
  sql: string;
}

/** A program that is tried within its checkout may lie elsewhere than beside its documentation. */
const PAGES = [3, 4, 6].map(up => new URL(`${'../'.repeat(up)}docs/cookbook.md`, import.meta.url));

/** The statements of docs/cookbook.md, each with the question that its chapter asks. */
export function readCookbook(): Recipe[] {
  return parseCookbook(readCookbookPage() ?? '');
}

/** The page itself; undefined where the package has none. */
export function readCookbookPage(): string | undefined {
  const page = PAGES.find(path => existsSync(path));
  return page && readFileSync(page, 'utf8');
}

export function parseCookbook(page: string): Recipe[] {
  return page.split(/^## /m).flatMap(chapter => {
    const [title = ''] = chapter.split('\n', 1);
    const question = title.replace(/^\d+\.\s*/, '').replaceAll('`', '');
    return [...chapter.matchAll(/^```sql\n(.*?)^```/gms)].map(([, sql = '']) => ({ question, sql: sql.trim() }));
  });
}
