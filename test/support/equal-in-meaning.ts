// Compares wire JSON by meaning. Imports nothing of ours on purpose: it judges what our code wrote.

const INSTANT = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d/;

/** null, an absent key, and an object that holds nothing are one thing; instants are the same moment with the same offset. */
export function normalise(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return normaliseText(value);
  if (Array.isArray(value)) return value.map(item => (item === null ? null : normalise(item)));
  if (typeof value === 'object') {
    const entries = Object.entries(value)
      .map(([key, inner]) => [key, normalise(inner)] as const)
      .filter(([, inner]) => inner !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return entries.length ? new Map(entries) : undefined;
  }
  return Object.is(value, -0) ? 0 : value;
}

function normaliseText(text: string): string {
  if (!INSTANT.test(text)) return text;
  const parts = /^(.*?[Tt][\d:]+)(?:\.(\d+))?(Z|z|[+-]\d\d:?\d\d(?::?\d\d)?)$/.exec(text);
  if (!parts) return text;
  const [, local, fraction = '', zone] = parts as unknown as [string, string, string | undefined, string];
  const seconds = local.split(':').length === 2 ? `${local}:00` : local;
  const offset = /z/i.test(zone) ? '+00:00' : zone.replace(/^([+-]\d\d):?(\d\d)/, '$1:$2');
  return `${seconds.toUpperCase()}.${fraction.replace(/0+$/, '')} ${offset === '-00:00' ? '+00:00' : offset.replace(/:00$/, (end, at) => (at > 3 ? '' : end))}`;
}
