import { Readable } from 'node:stream';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ensureNamesFollowed } from '../../app/find-source.ts';
import { isMoving, tellClosed } from '../../app/move/is-moving.ts';
import { PersonFiles } from '../../app/person-files/person-files.ts';
import { Questions } from '../../app/questions/questions.ts';
import { limitConnections } from '../../base/connections.ts';
import { messageOf, RingneckError, TryLaterError, UsageError } from '../../base/errors.ts';
import { isSameText } from '../../base/is-same-text.ts';
import { version } from '../../base/version.ts';
import type { sessionListRoutes } from '../api/operations.ts';
import { type ErrorAnswer, type Route, roles, type Streamed, streamed } from '../api/route.ts';
import { type AnswerOf, type RouteName, routes } from '../api/routes.ts';
import type { sessionRoutes } from '../api/session.ts';
import { addressOf, firstAsked } from '../page/asked.ts';
import { Actions } from './actions.ts';
import { Ahead } from './ahead.ts';
import { Assets } from './assets.ts';
import { coverageHandlers } from './coverage.ts';
import { dayHandlers } from './day.ts';
import { Addresses, GUARDED } from './doors.ts';
import { groupHandlers } from './group.ts';
import type { Asking, ConsoleParts, Handlers } from './handlers.ts';
import { Live } from './live.ts';
import { nightHandlers } from './night.ts';
import { describeConsole } from './openapi.ts';
import { operationHandlers } from './operations.ts';
import { askPeople, isReading, peopleHandlers } from './people.ts';
import { rasterHandlers } from './raster.ts';
import { kindOfStatus, Refusal } from './refusal.ts';
import { type ConsoleSession, type Grant, Sessions } from './sessions.ts';
import { createSqlHandlers } from './sql.ts';
import { trendHandlers } from './trends.ts';
import { userOf } from './user-of.ts';

/** A console that is served. */
export interface Console {
  /** Where links lead. */
  url: string;
  /** Where it listens, as `http://127.0.0.1:8088`. */
  listening: string;
  /** An address for the browser of who is granted that; it opens a session once, within a minute. */
  createLink(grant: Grant): string;
  close(): Promise<void>;
}

type Answering = (input: never, asking: Asking) => Promise<unknown>;

const COMMAND = 'ringneck console';
const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** A study has as many files of persons as people who look, and each is answered by a process of its own. */
const PERSON_IDLE_MS = 300_000;

const PERSON = ['/people/:id(^.+$)', '/people/:id(^.+$)/raster'];
/** The addresses at which the page has a screen: of each other one it says that there is nothing, and so does the status. */
const SCREENS = ['/', '/enter', '/coverage', '/sql', '/operations', ...PERSON, ...PERSON.map(path => `${path}/`)];

/** Where a console listens, and where its built page lies, if not where the build has put it. */
export interface ConsoleAddress {
  host: string;
  port: number;
  page?: string;
}

/** Serves the page and what it asks. */
export async function openConsole(parts: ConsoleParts, { page, ...address }: ConsoleAddress): Promise<Console> {
  return new Server(parts, new Assets(page)).listen(address);
}

class Server {
  readonly #parts: ConsoleParts;
  readonly #sessions: Sessions;
  readonly #assets: Assets;
  readonly #questions: Questions;
  /** Of nothing. */
  readonly #none: Questions;
  /** Whether what lies where the snapshot is put was seen to be of this warehouse. */
  #isOurs = false;
  readonly #personFiles: PersonFiles;
  readonly #live: Live;
  readonly #ahead: Ahead;
  /** By the path of a person's file. */
  readonly #ofPersons = new Map<string, Questions>();
  #addresses!: Addresses;
  #handlers: Record<string, Answering> = {};

  constructor(parts: ConsoleParts, assets: Assets) {
    this.#parts = parts;
    this.#assets = assets;
    this.#sessions = new Sessions(parts.settings.data, parts.now, error =>
      parts.log.error({ reason: messageOf(error) }, 'a session of the console is left out'),
    );
    this.#questions = new Questions(parts.settings.snapshot, parts.now);
    this.#none = new Questions(`${parts.settings.snapshot}.none`, parts.now);
    this.#personFiles = new PersonFiles(parts.settings);
    this.#live = new Live(parts, () => this.#questions.stamp);
    this.#ahead = new Ahead({
      stampOf: () => this.#questions.stamp,
      ask: async () => (await this.#isOfAnother()) || askPeople({ ...parts, questions: this.#questions }),
      now: () => performance.now(),
    });
  }

  async listen(address: { host: string; port: number }): Promise<Console> {
    const fastify = Fastify({
      logger: false,
      rewriteUrl: ({ url = '/' }) => this.#withoutPrefix(url),
      frameworkErrors: (_error, _request, reply) => void refuse(reply, 400, 'The request cannot be read.'),
      requestTimeout: 30_000,
      bodyLimit: 1_048_576,
      // A name of 200 characters, each of them written as three.
      routerOptions: { maxParamLength: 600 },
    });
    limitConnections(fastify.server);
    this.#guard(fastify);
    this.#servePage(fastify);
    this.#serveApi(fastify);
    fastify.get('/metrics', (request, reply) => this.#expose(request, reply));
    const url = await fastify.listen(address);
    this.#addresses = new Addresses(url, this.#parts.settings.consoleUrl);
    return {
      url: this.#addresses.url,
      listening: url,
      createLink: grant => {
        if (grant.person !== null) ensureNamesFollowed(this.#parts.settings);
        return `${this.#addresses.url}/enter#${this.#sessions.createCode(grant)}`;
      },
      close: async () => {
        this.#live.close();
        this.#ahead.close();
        fastify.server.closeAllConnections();
        await fastify.close();
        await Promise.all([this.#questions, this.#none, ...this.#ofPersons.values()].map(questions => questions.close()));
      },
    };
  }

  /** A proxy takes the path in front away, or does not. */
  #withoutPrefix(url: string): string {
    const prefix = this.#addresses?.prefix ?? '';
    const rest = url.slice(prefix.length);
    if (!prefix || !url.startsWith(prefix) || !/^([/?]|$)/.test(rest)) return url;
    return rest.startsWith('/') ? rest : `/${rest}`;
  }

  #guard(fastify: FastifyInstance): void {
    fastify.addHook('onRequest', async (request, reply) => {
      reply.headers(GUARDED);
      const { headers, method } = request;
      if (!this.#addresses.isKnown(headers.host)) {
        return refuse(
          reply,
          421,
          'The console is not known by this name.',
          'RINGNECK_CONSOLE_URL names the address by which it is reached.',
        );
      }
      if (method === 'GET' || method === 'HEAD') return;
      if (!this.#addresses.isOwn(headers)) return refuse(reply, 403, 'This was not sent by a page of the console.');
      if (headers['content-type'] !== undefined && !/^application\/json *(;|$)/i.test(headers['content-type'])) {
        return refuse(reply, 415, 'Only JSON is read.');
      }
    });
    fastify.setNotFoundHandler(({ method, url, headers }, reply) => {
      // Who came by a browser's address bar gets a page that leads on.
      const isPage = method === 'GET' && !/^\/(api|assets)\//.test(url) && headers.accept?.includes('text/html');
      if (!isPage) return refuse(reply, 404, 'There is nothing here.');
      return reply.code(404).type('text/html; charset=utf-8').send(this.#assets.page(this.#addresses.prefix));
    });
    fastify.setErrorHandler((error: FastifyError, request, reply) => this.#tell(error, request, reply));
  }

  #servePage(fastify: FastifyInstance): void {
    fastify.get<{ Params: { name: string } }>('/assets/:name', (request, reply) => {
      const asset = this.#assets.find(request.params.name);
      if (!asset) return refuse(reply, 404, 'There is nothing here.');
      const isSmall = /\bbr\b/.test(request.headers['accept-encoding'] ?? '');
      // Its name has a digest of what is in it.
      reply.headers({ 'Content-Type': asset.type, 'Cache-Control': 'public, max-age=31536000, immutable', Vary: 'Accept-Encoding' });
      if (isSmall) reply.header('Content-Encoding', 'br');
      return reply.send(isSmall ? asset.compressed : asset.body);
    });
    const page = (request: FastifyRequest, reply: FastifyReply) => {
      const { prefix } = this.#addresses;
      const { pathname, searchParams } = new URL(request.url, 'http://console');
      // Asked while the page's code is on its way.
      const ahead = pathname === '/enter' ? [] : firstAsked(pathname, searchParams);
      const links = ahead.map(({ name, input }) => `<${prefix}${addressOf(name, input)}>; rel=preload; as=fetch; crossorigin=anonymous`);
      if (links.length) reply.header('Link', links.join(', '));
      void this.#begin(request, ahead).catch(() => undefined);
      return reply.type('text/html; charset=utf-8').send(this.#assets.page(prefix));
    };
    for (const path of SCREENS) fastify.get(path, page);
  }

  /** Begins to answer what a page is about to ask: a browser takes longer to ask than most of it takes. Whoever asks is told what is wrong. */
  async #begin(request: FastifyRequest, ahead: ReturnType<typeof firstAsked>): Promise<void> {
    const session = this.#findSession(request);
    if (!session) return;
    const { signal } = new AbortController();
    const questions = await this.#questionsFor(session, signal);
    if (!questions) return;
    const asking: Asking = { ...this.#parts, session, questions, signal };
    for (const { name, input } of ahead) {
      const { ofSnapshot, input: declared }: Route = routes[name];
      if (ofSnapshot) this.#handlers[name]?.(declared.parse(input) as never, asking).catch(() => undefined);
    }
  }

  #serveApi(fastify: FastifyInstance): void {
    const handlers: Handlers<Exclude<RouteName, 'POST enter' | 'GET stream'>> = {
      ...this.#sessionHandlers(),
      'GET openapi.json': async () =>
        describeConsole({ prefix: this.#addresses.prefix, cookie: cookieName(new URL(this.#addresses.url).host) }),
      ...peopleHandlers,
      ...nightHandlers,
      ...trendHandlers,
      ...rasterHandlers,
      ...coverageHandlers,
      ...groupHandlers,
      ...createSqlHandlers(),
      ...dayHandlers,
      ...new Actions().handlers,
      ...operationHandlers,
    };
    this.#handlers = handlers as Record<string, Answering>;
    const special: Record<string, (request: FastifyRequest, reply: FastifyReply) => unknown> = {
      'POST enter': (request, reply) => this.#enter(request, reply),
      'GET stream': (request, reply) => this.#follow(request, reply),
    };
    for (const [name, declared] of Object.entries<Route>(routes)) {
      const [method = '', path = ''] = name.split(' ');
      const handler = this.#handlers[name];
      fastify.route({
        method,
        url: `/api/${path}`,
        handler: special[name] ?? ((request, reply) => this.#answer(declared, handler as Answering, request, reply)),
      });
    }
  }

  /** Who presents a token is known by it alone, be there a session or not. */
  async #expose(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { metricsToken } = this.#parts.settings;
    const [, given] = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '') ?? [];
    const session = request.headers.authorization === undefined ? this.#findSession(request) : undefined;
    const isScraper = given !== undefined && metricsToken !== undefined && isSameText(given, metricsToken);
    if (!isScraper && !session) {
      reply.header('WWW-Authenticate', 'Bearer');
      return refuse(
        reply,
        401,
        'Metrics are for who has the token, or a session of an operator.',
        'RINGNECK_METRICS_TOKEN sets the token.',
      );
    }
    if (session && session.role !== 'operator') return refuse(reply, 403, 'This session may not do that.', 'An operator may.');
    if (!this.#parts.commands) return refuse(reply, 503, 'ringneck up does not run: there is nothing to measure.', 'Start it.');
    // Loaded by who is scraped.
    const { expose } = await import('./metrics.ts');
    const { type, text } = await expose(await this.#parts.commands.metrics());
    return reply.type(type).send(text);
  }

  #sessionHandlers(): Handlers<Exclude<keyof typeof sessionRoutes, 'POST enter'> | keyof typeof sessionListRoutes> {
    return {
      'GET session': async (_input, { session, questions }) => ({
        role: session.role,
        person: session.person,
        csrf: session.csrf,
        expires_at: Math.floor(this.#sessions.endOf(session) / 1000),
        version,
        can_act: session.role === 'operator' && this.#parts.commands !== undefined,
        taken_at: await findTakenAt(questions),
        freshness: await this.#findFreshness(),
      }),
      'DELETE session': async (_input, { session }) => {
        this.#sessions.end(session.id);
        return {};
      },
      'GET sessions': async (_input, { session }) => ({
        sessions: this.#sessions.list().map(({ id, role, person, openedAt, seenAt }) => ({
          id,
          role,
          person,
          opened: Math.floor(openedAt / 1000),
          seen: Math.floor(seenAt / 1000),
          is_this: id === session.id,
        })),
      }),
      'DELETE sessions/:id': async ({ id }) => {
        if (!this.#sessions.end(id)) throw new Refusal(404, 'There is no such session any more.');
        return {};
      },
    };
  }

  /** The worst of what it depends on. */
  async #findFreshness(): Promise<AnswerOf<'GET session'>['freshness']> {
    const { commands } = this.#parts;
    if (!commands) return 'alone';
    // While the folder is closed for a moment its owner answers nothing.
    const found = await commands.readHindrances().catch(() => undefined);
    if (found?.disk_full) return 'full';
    if (found?.service_unreachable) return 'unreachable';
    if (found?.snapshot_failure) return 'unpublished';
    return (await isReading(commands)) ? 'reading' : 'followed';
  }

  async #answer(declared: Route, handler: Answering, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const session = this.#findSession(request);
    if (!session) return this.#refuseStranger(request, reply);
    if (roles.indexOf(session.role) < roles.indexOf(declared.role ?? 'person')) {
      return refuse(reply, 403, 'This session may not do that.', 'An operator may.');
    }
    const changes = request.method !== 'GET' && request.method !== 'HEAD';
    if (changes && !this.#sessions.isOwn(session, String(request.headers['x-csrf'] ?? ''))) {
      return refuse(reply, 403, 'This was not sent by a page of this session.', 'Load the page again.');
    }
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const questions = await this.#questionsFor(session, gone.signal);
    if (!questions) return refuse(reply, 401, 'There is no such account any more.', 'Ask who runs Ringneck.');
    if (declared.ofSnapshot) {
      const tag = `"${questions.stamp ?? 'none'}-${session.role}-${session.person === null ? '' : session.id.slice(0, 12)}"`;
      reply.header('ETag', tag);
      if (request.headers['if-none-match'] === tag) return reply.code(304).send();
    }
    const parsed = declared.input.safeParse({
      ...(request.query as object),
      ...((request.body as object | null | undefined) ?? {}),
      // Last: what is done is what the address says.
      ...(request.params as object),
    });
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return refuse(reply, 400, `${issue?.path.join('.') || 'the request'}: ${issue?.message ?? 'not understood'}`);
    }
    const asking: Asking = { ...this.#parts, session, questions, signal: gone.signal };
    const answer = await (handler as (input: unknown, asking: Asking) => Promise<unknown>)(parsed.data, asking);
    return declared.answer === streamed ? send(reply, answer as Streamed) : declared.answer.parse(answer);
  }

  /** A person is answered from a file in which there is nobody else; undefined where there is no such account any more, which ends the session. */
  async #questionsFor({ id, person }: ConsoleSession, signal: AbortSignal): Promise<Questions | undefined> {
    if (person === null) {
      this.#ahead.seen();
      return (await this.#isOfAnother()) ? this.#none : this.#questions;
    }
    const { settings } = this.#parts;
    ensureNamesFollowed(settings);
    try {
      const { path } = await this.#personFiles.get(person, signal);
      // The name may have become another's meanwhile.
      const now = this.#sessions.personOf(id);
      if (now === undefined) return undefined;
      if (now !== person) throw new TryLaterError(tellClosed('moved in', settings.data));
      const known = this.#ofPersons.get(path) ?? new Questions(path, this.#parts.now, PERSON_IDLE_MS);
      this.#ofPersons.set(path, known);
      return known;
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      // In this order: at the end of a move its session has the new name before the note of it goes.
      if (isMoving(settings.data) || this.#sessions.personOf(id) !== person) throw new TryLaterError(tellClosed('moved in', settings.data));
      const accounts = await this.#parts.commands?.listAccounts({});
      if (accounts?.some(({ user_id: name }) => name === person)) throw new TryLaterError(`nothing of ${person} is in the snapshot yet`);
      this.#sessions.end(id);
      return undefined;
    }
  }

  /** Whether a snapshot lies there that shows who was here before: who serves alone has refused it. */
  async #isOfAnother(): Promise<boolean> {
    const { commands } = this.#parts;
    if (this.#isOurs || !commands) return false;
    const isOfAnother = await commands.isSnapshotOfAnother();
    this.#isOurs = !isOfAnother;
    return isOfAnother;
  }

  /** The same session may follow as long as it is open; to follow does not keep it open. */
  #follow(request: FastifyRequest, reply: FastifyReply): unknown {
    const session = this.#findSession(request);
    if (!session) return this.#refuseStranger(request, reply);
    // Without a body nothing would ever end it.
    if (request.method === 'HEAD') return reply.type(EVENT_STREAM).send();
    if (this.#live.isFullFor(session.id)) return refuse(reply, 503, 'Too many pages follow already.', 'Close some of them.');
    const { raw } = reply.hijack();
    raw.writeHead(200, { ...GUARDED, 'Content-Type': EVENT_STREAM, 'X-Accel-Buffering': 'no' });
    const last = request.headers['last-event-id'];
    const isOpen = () => this.#sessions.isOpen(session.id);
    this.#live.follow({ raw, session: session.id, isPerson: session.person !== null, isOpen }, typeof last === 'string' ? last : undefined);
    return reply;
  }

  #enter(request: FastifyRequest, reply: FastifyReply): unknown {
    const parsed = routes['POST enter'].input.safeParse(request.body);
    const entered = parsed.success ? this.#sessions.enter(parsed.data.code, userOf(request.raw.socket)) : undefined;
    if (!entered) {
      return refuse(reply, 401, 'This link was used already, or is older than a minute.', `A fresh link: ${COMMAND}`);
    }
    const { host } = request.headers;
    const isSecure = this.#addresses.isSecure(host);
    const path = `${isSecure ? this.#addresses.prefix : ''}/`;
    reply.header(
      'Set-Cookie',
      `${cookieName(host)}=${entered.cookie}; Path=${path}; HttpOnly; SameSite=Strict; Max-Age=604800${isSecure ? '; Secure' : ''}`,
    );
    return {};
  }

  #findSession(request: FastifyRequest): ConsoleSession | undefined {
    for (const given of cookiesOf(request)) {
      const session = this.#sessions.find(given, userOf(request.raw.socket));
      if (session) return session;
    }
    return undefined;
  }

  #refuseStranger(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const message = cookiesOf(request).length ? 'The session is over.' : 'This browser has no session.';
    return refuse(reply, 401, message, `A fresh link: ${COMMAND}`);
  }

  #tell(error: FastifyError, request: FastifyRequest, reply: FastifyReply): unknown {
    if (error instanceof Refusal) return refuse(reply, error.status, error.message, error.help);
    if (error instanceof TryLaterError) return refuse(reply, 503, error.message, 'Try again in a moment.');
    if (error instanceof UsageError) return refuse(reply, 400, error.message);
    if (error instanceof RingneckError) return refuse(reply, 500, error.message, 'Try again.');
    if (error.statusCode !== undefined && error.statusCode < 500) return refuse(reply, error.statusCode, 'The request cannot be read.');
    const [path] = request.url.split('?', 1);
    // Who goes away ends what is asked for them.
    if (!reply.raw.destroyed) this.#parts.log.error({ path, reason: messageOf(error) }, 'the console could not answer');
    return refuse(reply, 500, 'This could not be answered.', 'The log of ringneck up says why.');
  }
}

/** Cookies know no ports: the console of each data folder has a name of its own. */
const cookieName = (host = '') => `ringneck-${host.replace(/[^a-z0-9]/gi, '-').toLowerCase()}`;

/** Of several that are called so another port of this machine has set all but one. */
function cookiesOf({ headers }: FastifyRequest): string[] {
  const begins = `${cookieName(headers.host)}=`;
  const pairs = (headers.cookie ?? '').split(/; */);
  return pairs.filter(pair => pair.startsWith(begins)).map(pair => pair.slice(begins.length));
}

function refuse(reply: FastifyReply, code: number, message: string, help = ''): FastifyReply {
  return reply.code(code).send({ error: { kind: kindOfStatus(code), message, help } } satisfies ErrorAnswer);
}

/** Bit by bit, as fast as the browser takes it. */
function send(reply: FastifyReply, { type, headers = {}, body }: Streamed): FastifyReply {
  // A proxy that collects what it hands on would hold it back.
  return reply
    .type(type)
    .headers(headers)
    .header('X-Accel-Buffering', 'no')
    .send(Readable.from(body, { objectMode: false }));
}

async function findTakenAt(questions: Questions): Promise<number | null> {
  if (questions.stamp === undefined) return null;
  const { taken_at: [at] = [] } = await questions.ask('taken-at');
  return typeof at === 'number' ? at : null;
}
