import { existsSync, readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { messageOf, RingneckError, TryLaterError } from '../base/errors.ts';
import { type LakeAddress, showCatalogue } from '../base/lake-address.ts';

export interface CataloguePlace {
  address: LakeAddress;
  /** Undefined: it is found as Postgres' own tools find it. */
  password?: string | undefined;
  /** PGHOST, PGSSLMODE and PGSSLROOTCERT of the environment. */
  host?: string | undefined;
  tls?: { mode?: string | undefined; root?: string | undefined };
}

/** How long an answer is waited for. */
export const ANSWER_MS = 3_000;
const CONNECTIONS = 3;

/** What the machines of one lake have in common, in plain tables of its catalogue that readers of the lake do not see. */
const TABLES = [
  // Two machines may start together.
  'SELECT pg_advisory_xact_lock(7213)',
  'CREATE SCHEMA IF NOT EXISTS ringneck',
  `CREATE TABLE IF NOT EXISTS ringneck.lease (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), token text NOT NULL, place text NOT NULL, host text NOT NULL, pid integer NOT NULL,
    since timestamptz NOT NULL, until timestamptz NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ringneck.files (
    name text PRIMARY KEY, content text, changed timestamptz NOT NULL, token text NOT NULL, number bigint NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ringneck.inbox (
    signature text PRIMARY KEY, event text, key bigint, received timestamptz NOT NULL DEFAULT clock_timestamp(), done timestamptz)`,
  'CREATE INDEX IF NOT EXISTS inbox_key ON ringneck.inbox (key)',
  'CREATE INDEX IF NOT EXISTS inbox_new ON ringneck.inbox (received) WHERE key IS NULL AND done IS NULL',
  `CREATE TABLE IF NOT EXISTS ringneck.machines (
    place text PRIMARY KEY, host text NOT NULL, folder text NOT NULL, pid integer NOT NULL, version text NOT NULL, since timestamptz NOT NULL,
    seen timestamptz NOT NULL)`,
  'ALTER TABLE ringneck.machines ADD COLUMN IF NOT EXISTS queue_seen timestamptz',
].join(';\n');

/** Whether there is what came last. */
const HAS_NEWEST = `SELECT EXISTS (
  SELECT FROM pg_attribute WHERE attrelid = to_regclass('ringneck.machines') AND attname = 'queue_seen') AS made`;

/** The catalogue of a lake as the Postgres that it is, beside DuckDB. Every statement is a transaction of its own. */
export class Catalogue {
  readonly #pool: pg.Pool;
  readonly #where: string;

  /** What a connection of one's own to it is made with. */
  readonly place: CataloguePlace;

  private constructor(place: CataloguePlace) {
    this.place = place;
    this.#where = showCatalogue(place.address);
    this.#pool = new pg.Pool({ ...configOf(place), max: CONNECTIONS, allowExitOnIdle: true });
    // A connection that ends while nobody uses it: the next statement has another one.
    this.#pool.on('error', () => undefined);
  }

  /**
   * Makes what is missing of our tables.
   * @throws TryLaterError where it cannot be reached, RingneckError where that is not allowed
   */
  static async open(place: CataloguePlace): Promise<Catalogue> {
    let catalogue = new Catalogue(place);
    try {
      await catalogue.ensureReachable().catch(async error => {
        const { mode = 'prefer' } = place.tls ?? {};
        if (mode !== 'prefer' || !/does not support SSL/.test(messageOf(error))) throw error;
        await catalogue.close();
        catalogue = new Catalogue({ ...place, tls: { mode: 'disable' } });
      });
      // Only a user who may make them needs to: of tables that are there this asks for nothing.
      const [made] = await catalogue.query<{ made: boolean }>(HAS_NEWEST);
      if (!made?.made) await catalogue.query(TABLES);
      return catalogue;
    } catch (error) {
      await catalogue.close();
      throw error;
    }
  }

  /** @throws TryLaterError where it does not answer, RingneckError where it refuses */
  async ensureReachable(): Promise<void> {
    await this.query('SELECT 1');
  }

  /** @throws TryLaterError where it does not answer, RingneckError where it refuses */
  async query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>(sql, values)).rows;
    } catch (error) {
      const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
      // Classes 08, 53, 57 and 40: the connection, what it lacks, who ended it, and what is only to be repeated.
      if (code === '' || /^(08|53|57|40)/.test(code)) {
        throw new TryLaterError(`the lake’s catalogue ${this.#where} does not answer: ${messageOf(error)}`, { cause: error });
      }
      throw new RingneckError(`the lake’s catalogue ${this.#where} refuses: ${messageOf(error)}`, 1, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

/** What a connection is made with. */
export function configOf({ address, password, host = address.host ?? usualHost(), tls = {} }: CataloguePlace): pg.ClientConfig {
  const { port, user, catalogue: database } = address;
  return {
    ...{ host: address.host ?? host, port, user, database, password, ssl: tlsOf(tls, address.host ?? host) },
    keepAlive: true,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    statement_timeout: ANSWER_MS,
    application_name: 'ringneck',
    // What is acknowledged is there, whatever the server is set to.
    options: '-c synchronous_commit=on',
  };
}

/** Where Postgres' own tools look, as most distributions build them. */
const usualHost = () => (existsSync('/var/run/postgresql') ? '/var/run/postgresql' : 'localhost');

/** As libpq reads the same settings. A socket has no TLS. */
function tlsOf({ mode = 'prefer', root }: NonNullable<CataloguePlace['tls']>, host: string): boolean | ConnectionOptions {
  if (host.startsWith('/') || mode === 'disable' || mode === 'allow') return false;
  if (mode === 'prefer' || mode === 'require') return { rejectUnauthorized: false };
  const ca = root === undefined || root === 'system' ? {} : { ca: readFileSync(root, 'utf8') };
  return mode === 'verify-ca' ? { ...ca, checkServerIdentity: () => undefined } : ca;
}
