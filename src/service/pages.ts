import { findInstant } from '../../schema/instant.ts';
import { fieldsAlways, findDayOf, findIdOf, findMicros, type Resource, type WireDocument } from '../../schema/resource.ts';
import { createIsWithin, daysOf, daysOfMoments } from './document-range.ts';
import { type PageRequest, parseNextToken, type TokenOwner, writeNextToken } from './next-token.ts';
import { completeDays, completeMoments, HEART_RATE_PARAMETERS, parseDays, parseMoments, type Query } from './query.ts';
import type { CollectionRoute } from './routes.ts';
import type { ServiceSettings } from './settings.ts';
import type { DocumentPosition, DocumentSource, HeartRatePosition } from './source.ts';

/** What pages are made of. */
export interface PageMaker {
  source: DocumentSource;
  settings: ServiceSettings;
  clock: () => Date;
  tokenKey: Uint8Array;
}

/** A collection's envelope (2.16). */
export interface Envelope {
  data: WireDocument[];
  next_token?: string | null;
}

/** How many documents are asked of the source at once where a collection has no pages. */
const WHOLE_RANGE_STEP = 1000;

/** Answers a collection request (4.2). */
export async function readCollection(maker: PageMaker, route: CollectionRoute, userId: string, query: Query): Promise<Envelope> {
  const { resource } = route;
  if (resource.identifiedBy !== undefined) return readRows(maker, route, { userId, field: resource.identifiedBy }, query);
  const owner: TokenOwner = { userId, collection: resource.path };
  const given = parseDays(query, route.parameters);
  const page: PageRequest<string, DocumentPosition> = given.nextToken
    ? parseNextToken(maker.tokenKey, owner, given.nextToken, given)
    : { ...(resource.dated ? completeDays(given, maker.clock()) : {}), fields: given.fields };
  const list = createList(maker, userId, resource, findPlace(maker, resource, page));
  if (!route.paged) return { data: (await readWhole(list, resource)).map(chooseFields(page.fields, fieldsAlways(resource))) };
  return answerPage(maker, resource, owner, { page, list, size: maker.settings.pageSize });
}

/** The same of rows that a moment tells apart, whose range is of moments as that of heart rate. */
async function readRows(
  maker: PageMaker,
  { resource, parameters }: CollectionRoute,
  { userId, field }: { userId: string; field: string },
  query: Query,
): Promise<Envelope> {
  const owner: TokenOwner = { userId, collection: resource.path };
  const given = parseMoments(query, parameters);
  const page: PageRequest<number, DocumentPosition> = given.nextToken
    ? parseNextToken(maker.tokenKey, owner, given.nextToken, given)
    : { ...completeMoments(given, maker.clock()), fields: given.fields };
  const { start = 0, end = 0 } = page;
  const isWithin = (row: WireDocument) => {
    const micros = findMicros(row, field) ?? Number.NaN;
    return micros >= start && micros < end;
  };
  const list = createList(maker, userId, resource, { days: daysOfMoments({ start, end }), isWithin });
  if (!given.latest) return answerPage(maker, resource, owner, { page, list, size: maker.settings.heartRatePageSize });
  const latest = (await readWhole(list, resource)).slice(-1);
  return { data: latest.map(chooseFields(page.fields, fieldsAlways(resource))), next_token: null };
}

async function answerPage(
  { tokenKey }: PageMaker,
  resource: Resource,
  owner: TokenOwner,
  { page, list, size }: { page: PageRequest<unknown, DocumentPosition>; list: List; size: number },
): Promise<Envelope> {
  const { data, last } = cut(await list(page.after, size + 1), size);
  return {
    data: data.map(chooseFields(page.fields, fieldsAlways(resource))),
    next_token: last ? writeNextToken(tokenKey, owner, { ...page, after: positionOf(resource, last) }) : null,
  };
}

async function readWhole(list: List, resource: Resource): Promise<WireDocument[]> {
  const data: WireDocument[] = [];
  for (let step = WHOLE_RANGE_STEP; step === WHOLE_RANGE_STEP; ) {
    const last = data.at(-1);
    const found = await list(last && positionOf(resource, last), WHOLE_RANGE_STEP);
    data.push(...found);
    step = found.length;
  }
  return data;
}

/** Answers a heart-rate request (4.3). */
export async function readHeartRate(maker: PageMaker, userId: string, query: Query): Promise<Envelope> {
  const owner: TokenOwner = { userId, collection: 'heartrate' };
  const given = parseMoments(query, HEART_RATE_PARAMETERS);
  const page: PageRequest<number, HeartRatePosition> = given.nextToken
    ? parseNextToken(maker.tokenKey, owner, given.nextToken, given)
    : { ...completeMoments(given, maker.clock()), fields: given.fields };
  const size = maker.settings.heartRatePageSize;
  const { start: from = 0, end: to = 0, after } = page;
  const { data, last } = cut(await maker.source.heartRate(userId, { from, to, after, limit: size + 1 }), size);
  return {
    data: data.map(chooseFields(page.fields, ['timestamp'])),
    next_token: last ? writeNextToken(maker.tokenKey, owner, { ...page, after: momentOf(last) }) : null,
  };
}

type List = (after: DocumentPosition | undefined, limit: number) => Promise<WireDocument[]>;

/** Where the documents of a range are: the days of all, and which of those belong to it. */
interface Place {
  days: { from: string; to: string };
  isWithin(document: WireDocument): boolean;
}

/** Undefined where documents belong to no day. */
function findPlace({ settings }: PageMaker, resource: Resource, { start, end }: PageRequest<string, unknown>): Place | undefined {
  if (start === undefined || end === undefined) return undefined;
  return { days: daysOf(resource, { start, end }, settings.inclusiveEnd), isWithin: createIsWithin(resource, { start, end }) };
}

/** What lies in a place, in the order of the source; fewer than `limit` are the last. */
function createList({ source }: PageMaker, userId: string, resource: Resource, place: Place | undefined): List {
  if (!place) return (after, limit) => source.list(userId, resource, { after, limit });
  const { days, isWithin } = place;
  return async (after, limit) => {
    const found: WireDocument[] = [];
    let more = days.from <= days.to;
    for (let last = after; more && found.length < limit; ) {
      const read = await source.list(userId, resource, { ...days, after: last, limit });
      found.push(...read.filter(isWithin));
      const latest = read.at(-1);
      more = read.length === limit && latest !== undefined;
      if (more && latest) last = positionOf(resource, latest);
    }
    return found.slice(0, limit);
  };
}

/** One more than a page holds is read, so that the last page is known as such. */
function cut(found: WireDocument[], size: number): { data: WireDocument[]; last: WireDocument | undefined } {
  const data = found.slice(0, size);
  return { data, last: found.length > size ? data.at(-1) : undefined };
}

function positionOf(resource: Resource, document: WireDocument): DocumentPosition {
  return { day: findDayOf(resource, document) ?? '', id: findIdOf(resource, document) ?? '' };
}

function momentOf(row: WireDocument): HeartRatePosition {
  const instant = findInstant(String(row.timestamp));
  if (!instant) throw new Error('the source gave a heart-rate row without a readable timestamp');
  return { micros: instant.micros, source: String(row.source) };
}

/** Narrows documents to the fields asked for and those that always come; unknown names are ignored (4.2). */
function chooseFields(fields: readonly string[] | undefined, always: readonly string[]): (document: WireDocument) => WireDocument {
  if (!fields) return document => document;
  const names = new Set([...always, ...fields]);
  return document => Object.fromEntries(Object.entries(document).filter(([name]) => names.has(name)));
}
