import type { FastifyInstance } from 'fastify';
import { onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import { findInstant } from '../../schema/instant.ts';
import { findDayOf, findIdOf, type WireDocument } from '../../schema/resource.ts';
import { createService, type ServiceOptions } from '../../src/service/service.ts';
import type { ServiceSettings } from '../../src/service/settings.ts';
import type { DocumentSource } from '../../src/service/source.ts';
import { createAuthenticate, hashToken, type TokenState } from '../../src/service/tokens.ts';

/** What a user has: documents by path, heart-rate rows, and who they are. Tests type it by hand and may change it while the service runs. */
export interface Holdings {
  documents: Record<string, WireDocument[]>;
  heartRate?: WireDocument[];
  personalInfo?: WireDocument;
}

export function createLiteralSource(holdings: Record<string, Holdings>): DocumentSource {
  const micros = (row: WireDocument) => findInstant(String(row.timestamp))!.micros;
  const later = (a: readonly (string | number)[], b: readonly (string | number)[]) => a[0]! > b[0]! || (a[0] === b[0] && a[1]! > b[1]!);
  return {
    async list(userId, resource, { from, to, after, limit }) {
      const dayOf = (document: WireDocument) => findDayOf(resource, document) ?? '';
      const place = (document: WireDocument) => [dayOf(document), findIdOf(resource, document) ?? ''];
      return (holdings[userId]?.documents[resource.path] ?? [])
        .filter(document => !resource.dated || (dayOf(document) >= from! && dayOf(document) <= to!))
        .filter(document => !after || later(place(document), [after.day, after.id]))
        .sort((a, b) => (later(place(a), place(b)) ? 1 : -1))
        .slice(0, limit);
    },
    async find(userId, resource, id) {
      return holdings[userId]?.documents[resource.path]?.find(document => document.id === id);
    },
    async heartRate(userId, { from, to, after, limit }) {
      const place = (row: WireDocument) => [micros(row), String(row.source)];
      return (holdings[userId]?.heartRate ?? [])
        .filter(row => from <= micros(row) && micros(row) < to)
        .filter(row => !after || later(place(row), [after.micros, after.source]))
        .sort((a, b) => (later(place(a), place(b)) ? 1 : -1))
        .slice(0, limit);
    },
    async personalInfo(userId) {
      return holdings[userId]?.personalInfo;
    },
  };
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
  body: any;
}

export interface RunningService {
  url: string;
  service: FastifyInstance;
  /** GET with ada's token, another's, or none (null). */
  get(path: string, token?: string | null, init?: RequestInit): Promise<Answer>;
}

/** Signs next_token in every test service. */
export const tokenKey = new Uint8Array(32).fill(7);

/** A service on a free port until the test ends. `ada-token` speaks for ada and so on; `ada-expired` and the like are in that state. */
export async function startService(
  holdings: Record<string, Holdings>,
  settings: Partial<ServiceSettings> = {},
  options: Partial<ServiceOptions> = {},
): Promise<RunningService> {
  const states: Record<string, TokenState> = { token: 'active', expired: 'expired', revoked: 'revoked', lapsed: 'lapsed' };
  const holders = Object.keys(holdings).flatMap(userId =>
    Object.entries(states).map(([word, state]) => [hashToken(`${userId}-${word}`), { userId, state }] as const),
  );
  const service = createService({
    resources,
    source: createLiteralSource(holdings),
    authenticate: createAuthenticate(new Map(holders)),
    settings,
    clock: () => new Date('2025-03-10T15:30:00Z'),
    tokenKey,
    ...options,
  });
  const url = await service.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => service.close());
  return {
    url,
    service,
    async get(path, token = 'ada-token', init = {}) {
      const headers = new Headers(init.headers);
      if (token !== null) headers.set('authorization', `Bearer ${token}`);
      const response = await fetch(url + path, { ...init, headers });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) };
    },
  };
}
