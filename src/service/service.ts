import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { Resource } from '../../schema/resource.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { limitConnections } from '../base/connections.ts';
import { createAdmit } from './admission.ts';
import { answerBrokenConnection, createAnswerError, createRefuseUnroutable, type ServiceLog } from './answers.ts';
import { describeService } from './openapi.ts';
import { type PageMaker, readCollection, readHeartRate } from './pages.ts';
import { Problem } from './problem.ts';
import type { Query } from './query.ts';
import { listRoutes, type Route } from './routes.ts';
import { defaultSettings, type ServiceSettings } from './settings.ts';
import type { SignIn } from './sign-in/sign-in.ts';
import { SIGN_IN_ROUTES, serveSignIn } from './sign-in/sign-in-routes.ts';
import type { DocumentSource } from './source.ts';
import type { Authenticate, TokenHolder } from './tokens.ts';
import { listSubscriptionRoutes, serveSubscriptions } from './webhooks/subscription-routes.ts';
import type { Webhooks } from './webhooks/webhooks.ts';

export interface ServiceOptions {
  resources: readonly Resource[];
  source: DocumentSource;
  authenticate: Authenticate;
  settings?: Partial<ServiceSettings>;
  /** The service's own time: of default ranges, and of the `Date` of every answer. */
  clock: () => Date;
  /** Rules the rate limits; the same clock where none is given. */
  realClock?: () => Date;
  /** Signs next_token; the same key after a restart keeps tokens valid. At least 32 random bytes. */
  tokenKey: Uint8Array;
  log?: ServiceLog;
  /** Serves section 4.4 too. */
  webhooks?: Webhooks;
  /** Lets people sign in too, unless `specificationOnly` leaves it out. */
  signIn?: SignIn;
  /** Whether answers are for now as they are with `specificationOnly`. Extensions stay. */
  answersAsSpecified?: () => boolean;
}

/** Of a request line with its headers. Parameters may be as long, so that a long id is an unknown document and no error of the router. */
const MAX_HEADER_BYTES = 16_384;

/** The service of section 4 and its extensions, over any source of documents. It does not listen yet. */
export function createService(options: ServiceOptions): FastifyInstance {
  const { resources, clock, realClock = clock, log, webhooks, answersAsSpecified } = options;
  const settings = { ...defaultSettings, ...options.settings };
  const { specificationOnly } = settings;
  const signIn = specificationOnly ? undefined : options.signIn;
  const described = { resources, heartRate, specificationOnly, webhooks: webhooks !== undefined, signIn: signIn !== undefined };
  const routes = listRoutes(described);
  const subscriptionRoutes = webhooks ? listSubscriptionRoutes(specificationOnly) : [];
  const service = createServer(settings, clock, log);
  const known = [...routes.map(({ path }) => ({ method: 'get', path })), ...subscriptionRoutes, ...(signIn ? SIGN_IN_ROUTES : [])];
  service.addHook('onRequest', createRefuseUnroutable(known, settings.bodyLimit));
  serveSpecification(service, describeService(described));
  if (webhooks) serveSubscriptions(service, webhooks, subscriptionRoutes, () => specificationOnly || (answersAsSpecified?.() ?? false));
  if (signIn) serveSignIn(service, signIn, realClock);
  serveDocuments(service, routes, new Map(listRoutes({ ...described, specificationOnly: true }).map(route => [route.path, route])), {
    ...options,
    settings,
  });
  return service;
}

/** The server itself: its limits, its clock in every answer, and what it logs. */
function createServer(settings: ServiceSettings, clock: () => Date, log: ServiceLog | undefined): FastifyInstance {
  const { requestTimeoutMs, answerTimeoutMs } = settings;
  const answerError = createAnswerError(log);
  const showClock = (reply: FastifyReply) => void reply.raw.setHeader('Date', clock().toUTCString());
  const service = Fastify({
    logger: false,
    bodyLimit: settings.bodyLimit,
    requestTimeout: requestTimeoutMs,
    handlerTimeout: answerTimeoutMs,
    connectionTimeout: answerTimeoutMs + 10_000,
    keepAliveTimeout: settings.idleTimeoutMs,
    routerOptions: { maxParamLength: MAX_HEADER_BYTES, caseSensitive: true },
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, requestTimeoutMs),
    },
    frameworkErrors: (error, request, reply) => {
      showClock(reply);
      answerError(error, request, reply);
    },
    clientErrorHandler: answerBrokenConnection,
  });
  limitConnections(service.server);
  service.setErrorHandler(answerError);
  // Before anything is read: what an answer holds is as of its date, or later.
  service.addHook('onRequest', async (_, reply) => showClock(reply));
  service.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, is404 } = request;
    const route = is404 ? undefined : routeOptions.url;
    log?.debug({ method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }, 'answered');
  });
  service.addHook('preClose', async () => {
    setTimeout(() => service.server.closeAllConnections(), settings.closeTimeoutMs).unref();
  });
  return service;
}

/** @param asSpecified the routes as they are with `specificationOnly`, by path */
function serveDocuments(
  service: FastifyInstance,
  routes: readonly Route[],
  asSpecified: ReadonlyMap<string, Route>,
  {
    source,
    authenticate,
    settings,
    clock,
    realClock = clock,
    tokenKey,
    answersAsSpecified,
  }: ServiceOptions & { settings: ServiceSettings },
): void {
  const admit = createAdmit(authenticate, settings, realClock);
  const maker: PageMaker = { source, settings, clock, tokenKey };
  for (const route of routes) {
    service.get<{ Querystring: Query; Params: { document_id?: string } }>(fastifyPath(route.path), async (request, reply) => {
      const holder = admit(request.headers.authorization, route.scope);
      const served = answersAsSpecified?.() ? (asSpecified.get(route.path) ?? route) : route;
      const body = await read(maker, served, holder, request.query, request.params.document_id ?? '');
      reply.header('Cache-Control', 'no-store').type('application/json; charset=utf-8');
      return reply.send(JSON.stringify(body));
    });
  }
}

async function read(maker: PageMaker, route: Route, { userId, scopes }: TokenHolder, query: Query, id: string): Promise<object> {
  if (route.kind === 'collection') return readCollection(maker, route, userId, query);
  if (route.kind === 'heart_rate') return readHeartRate(maker, userId, query);
  const { source } = maker;
  const found = await (route.kind === 'document' ? source.find(userId, route.resource, id) : source.personalInfo(userId));
  if (!found) throw new Problem(404, 'Document not found.');
  if (route.kind === 'document' || !scopes || scopes.includes('email')) return found;
  const { email: _, ...withoutEmail } = found;
  return withoutEmail;
}

function fastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

/** Serves the OpenAPI document at /openapi.json, and a page to browse it at /docs. */
function serveSpecification(service: FastifyInstance, document: Record<string, unknown>): void {
  const text = JSON.stringify(document);
  service.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
  service.register(swagger, { mode: 'static', specification: { document: document as never } });
  service.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { docExpansion: 'none' } });
}
