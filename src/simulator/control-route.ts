import Fastify, { type FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createAnswerError } from '../service/answers.ts';
import { Problem } from '../service/problem.ts';
import { TOKEN_STATES, type TokenChange, type TokenState } from '../service/tokens.ts';
import { editSchema } from './edit.ts';
import { type FaultSwitches, WrongFault } from './faults.ts';
import type { Timeline } from './timeline.ts';
import type { Person } from './users/person.ts';

export interface ControlOptions {
  timeline: Timeline;
  faults: FaultSwitches;
  isSecret(given: string): boolean;
  setTokenState(userId: string, state: TokenState): TokenChange;
  /** How many subscriptions are active. */
  subscriptions?: () => number;
}

/** A year and a day. */
const FURTHEST = 366 * 86_400;
const person = z.string().min(1);

const clockBody = z
  .strictObject({ speed: z.number().min(0).max(10_000).optional(), advance: z.int().min(1).max(FURTHEST).optional() })
  .refine(({ speed, advance }) => speed !== undefined || advance !== undefined, 'Input should have speed, advance or both');
const syncBody = z.strictObject({ person });
const napBody = z.strictObject({ person, minutes: z.int().min(15).max(180).default(30) });
const tokenBody = z.strictObject({ person, state: z.enum(TOKEN_STATES) });
const faultsBody = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));
const editBody = z.looseObject({ person, kind: z.string() });

/** The local route by which tests and demonstrations make things happen. It does not listen yet; every request needs the secret. */
export function createControl(options: ControlOptions): FastifyInstance {
  const { timeline, isSecret } = options;
  const control = Fastify({ logger: false, bodyLimit: 65_536, forceCloseConnections: true });
  control.setErrorHandler(createAnswerError(undefined));
  control.setNotFoundHandler(() => {
    throw new Problem(404, 'Not Found');
  });
  control.addHook('onRequest', async ({ headers: { authorization = '' } }) => {
    if (isSecret(/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '')) return;
    throw new Problem(401, 'Send Authorization: Bearer <the control secret>; --new-tokens makes a new one.', {
      'WWW-Authenticate': 'Bearer',
    });
  });
  control.get('/control', async () => reportOf(options));
  control.post('/control/clock', async ({ body }) => {
    const { speed, advance } = parse(clockBody, body);
    if (advance !== undefined) await timeline.advance(advance);
    if (speed !== undefined) await timeline.setSpeed(speed);
    return reportOf(options);
  });
  control.post('/control/faults', async ({ body }) => {
    switchFaults(options.faults, parse(faultsBody, body));
    return reportOf(options);
  });
  serveUsers(control, options);
  return control;
}

/** What happens to one user: a sync, a nap, an edit, another state of the token. */
function serveUsers(control: FastifyInstance, { timeline, setTokenState }: ControlOptions): void {
  const findPerson = (name: string): Person => {
    const found = timeline.people().find(({ person: { name: own, userId } }) => own === name || userId === name);
    if (!found) throw new Problem(404, `No person is called ${JSON.stringify(name)}.`);
    return found.person;
  };
  control.post('/control/sync', async ({ body }) => ({ events: await timeline.sync(findPerson(parse(syncBody, body).person).userId) }));
  control.post('/control/nap', async ({ body }) => {
    const { person: name, minutes } = parse(napBody, body);
    return timeline.nap(findPerson(name).userId, minutes);
  });
  control.post('/control/edit', async ({ body }) => {
    const { person: name, ...rest } = parse(editBody, body);
    const edit = parse(editSchema, { ...rest, userId: findPerson(name).userId });
    if (edit.kind === 'record-nap') throw wrong(['kind'], 'A nap is recorded by POST /control/nap');
    return { events: await timeline.edit(edit) };
  });
  control.post('/control/token', async ({ body }) => {
    const { person: name, state } = parse(tokenBody, body);
    const { name: own, userId } = findPerson(name);
    const { before, after } = setTokenState(userId, state);
    if (after !== state) throw new Problem(409, `The token of ${own} is ${after}, and stays so; --new-tokens makes a new one.`);
    return { person: own, user_id: userId, before, state: after };
  });
}

function switchFaults(faults: FaultSwitches, changes: z.infer<typeof faultsBody>): void {
  const text = (value: string | number | boolean | null) => (value === null || value === false ? null : value === true || String(value));
  try {
    faults.set(Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, text(value)])));
  } catch (error) {
    if (error instanceof WrongFault) throw wrong([error.fault], error.message);
    throw error;
  }
}

function reportOf({ timeline, faults, subscriptions }: ControlOptions): object {
  const moment = (seconds: number) => (seconds > 0 ? new Date(seconds * 1000).toISOString() : null);
  return {
    clock: { now: new Date(timeline.clock.now()).toISOString(), speed: timeline.clock.speed },
    people: timeline.people().map(({ person: { name, userId }, view }) => ({
      name,
      user_id: userId,
      last_sync: moment(view.synced),
      last_upload: moment(view.uploaded),
    })),
    faults: faults.shown(),
    untold_events: timeline.untold(),
    ...(subscriptions ? { subscriptions: subscriptions() } : {}),
  };
}

const wrong = (path: readonly string[], msg: string) => new Problem(422, [{ loc: ['body', ...path], msg, type: 'value_error' }]);

/** A body as it should be; else 422 with everything that is wrong with it. */
function parse<Body>(schema: z.ZodType<Body>, body: unknown): Body {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  throw new Problem(
    422,
    parsed.error.issues.map(({ path, message, code }) => ({ loc: ['body', ...path.map(String)], msg: message, type: code })),
  );
}
