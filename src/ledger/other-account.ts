import { openReader } from '../warehouse/query.ts';
import { textList } from '../warehouse/sql.ts';

/** In a file that nobody has open: an account that is none of these, or one of them that was removed, as a phrase. */
export async function findOtherAccount(path: string, names: readonly string[]): Promise<string | undefined> {
  const reader = await openReader(path);
  try {
    const { columns, chunks } = await reader.query(
      `SELECT CASE WHEN user_id NOT IN (${textList(names)}) THEN 'the account ' || user_id ELSE 'the removal of ' || user_id END
       FROM sync.accounts WHERE user_id NOT IN (${textList(names)}) OR state = 'removed' ORDER BY 1 LIMIT 1`,
    );
    for await (const [row] of chunks) return columns[0]?.text(row?.[0] ?? null) ?? undefined;
    return undefined;
  } finally {
    reader.close();
  }
}
