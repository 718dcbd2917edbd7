import type { InputOf, RouteName } from '../api/routes.ts';
import { isMetric, type Metric } from './parts/metrics.ts';

const SORTS = ['attention', 'name', 'freshest'] as const;
const isSort = (text: string | null): text is (typeof SORTS)[number] => SORTS.some(sort => sort === text);

/** What Overview asks at an address. */
export function askedOfPeople(query: URLSearchParams): InputOf<'GET people'> {
  const sort = query.get('sort');
  return {
    q: query.get('q') ?? '',
    sort: isSort(sort) ? sort : 'attention',
    page: Math.max(1, Math.floor(Number(query.get('page') ?? 1)) || 1),
  };
}

/** Of which day a person is shown at an address. */
export const askedOfPerson = (id: string, query: URLSearchParams) => ({ id, day: query.get('day') ?? 'newest' });

/** Days that trends may show, and as many as they show where the address says nothing. */
export const RANGES: readonly number[] = [30, 90, 180, 365, 1095];
export const USUAL_RANGE = 90;
export const USUAL_TRENDS: readonly Metric[] = [
  ...(['average_hrv', 'lowest_heart_rate', 'temperature_deviation'] as const),
  ...(['total_sleep_duration', 'average_breath', 'sleep_score'] as const),
];

/** Which trends of a person are shown at an address, six at most, and of how many days. */
export function trendsAt(query: URLSearchParams): { metrics: readonly Metric[]; range: number } {
  const days = Number(/^(\d+)d$/.exec(query.get('range') ?? '')?.[1]);
  const chosen = (query.get('metrics') ?? '').split(',').filter(isMetric);
  return {
    metrics: (chosen.length ? [...new Set(chosen)] : USUAL_TRENDS).slice(0, 6),
    range: RANGES.includes(days) ? days : USUAL_RANGE,
  };
}

/** What the trends of a person are asked at an address. */
export function askedOfTrends(id: string, query: URLSearchParams): InputOf<'GET people/:id/trends'> {
  const { metrics, range } = trendsAt(query);
  return { ...askedOfPerson(id, query), metrics: metrics.join(','), days: range };
}

/** Whose `/people/ada` it is, with what follows; undefined where it is another address, or cannot be read. */
export function personOf(path: string, behind = ''): string | undefined {
  try {
    const [, name] = /^\/people\/([^/]+)(\/raster)?\/?$/.exec(path) ?? [];
    return name === undefined || path.replace(/\/$/, '').endsWith('/raster') !== (behind !== '') ? undefined : decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/** Where a question is asked, without the prefix; what of the input is no part of the path is its query. */
export function addressOf<Name extends RouteName>(name: Name, input: InputOf<Name>): string {
  const { path, rest } = placeOf(name, input);
  const query = new URLSearchParams(rest.map(([key, value]): [string, string] => [key, String(value)]));
  return query.size ? `${path}?${query}` : path;
}

/** The path of a question, and what of its input is not in it. */
export function placeOf(name: string, input: object): { path: string; rest: [string, unknown][] } {
  const rest = new Map<string, unknown>(Object.entries(input).filter(([, value]) => value !== undefined));
  const [, pattern = ''] = name.split(' ');
  const path = pattern.replace(/:(\w+)/g, (_, key: string) => {
    const value = encodeURIComponent(String(rest.get(key)));
    rest.delete(key);
    return value;
  });
  return { path: `/api/${path}`, rest: [...rest] };
}

/** A question with its input. */
type Asked = { [Name in RouteName]: { name: Name; input: InputOf<Name> } }[RouteName];

/** What the page asks first at an address, so that it can be on its way before the page's code is. */
export function firstAsked(path: string, query: URLSearchParams): Asked[] {
  const session: Asked = { name: 'GET session', input: {} };
  if (path === '/') return [session, { name: 'GET people', input: askedOfPeople(query) }];
  const id = personOf(path);
  if (id === undefined) return [session];
  const asked = askedOfPerson(id, query);
  return [
    session,
    { name: 'GET people/:id/night/:day', input: asked },
    { name: 'GET people/:id/day/:day', input: asked },
    { name: 'GET people/:id/trends', input: askedOfTrends(id, query) },
  ];
}
