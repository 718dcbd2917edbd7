/** A query that was run in this browser. */
export interface Past {
  sql: string;
  /** Milliseconds since the epoch. */
  at: number;
}

const KEY = 'ringneck-sql-history';
const MOST = 100;
/** The browser keeps some megabytes for all. */
const LONGEST = 20_000;

/** Newest first. */
export function readHistory(): Past[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isPast) : [];
  } catch {
    // Somebody else's, or a browser that keeps nothing.
    return [];
  }
}

/** The same query is there once. */
export function addToHistory(sql: string, at: number): Past[] {
  const kept = [...(sql.length > LONGEST ? [] : [{ sql, at }]), ...readHistory().filter(past => past.sql !== sql)].slice(0, MOST);
  write(kept);
  return kept;
}

/** What was written last in this tab, at the address that had this query. */
let draft = { linked: '', text: '' };

export function noteDraft(linked: string, text: string): void {
  draft = { linked, text };
}

/** Who looks something up on another screen, or comes in again, goes on where they were. */
export const draftAt = (linked: string): string => ((linked === '' || linked === draft.linked) && draft.text) || linked;

const OF_KEY = 'ringneck-sql-history-of';

/** Whose queries are kept: who comes in for another role or person than before reads none of theirs. */
export function keepHistoryOf({ role, person }: { role: string; person: string | null }): void {
  const whose = `${role} ${person ?? ''}`;
  try {
    const before = localStorage.getItem(OF_KEY);
    if (before !== null && before !== whose) clearHistory();
    localStorage.setItem(OF_KEY, whose);
  } catch {
    // A browser that keeps nothing.
  }
}

export function clearHistory(): void {
  noteDraft('', '');
  try {
    localStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing.
  }
}

function write(kept: readonly Past[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // It is full, or not allowed: then there is no history.
  }
}

const isPast = (value: unknown): value is Past =>
  typeof value === 'object' &&
  value !== null &&
  'sql' in value &&
  typeof value.sql === 'string' &&
  'at' in value &&
  typeof value.at === 'number';
