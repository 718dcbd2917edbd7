import { z } from 'zod';
import { route, streamed } from './route.ts';

/** What is not asked for by the page's own questions. */
export const aboutRoutes = {
  'GET openapi.json': route({
    summary: 'This description, in OpenAPI 3.1',
    role: 'person',
    input: z.strictObject({}),
    answer: z.looseObject({ openapi: z.string() }),
  }),
  'GET stream': route({
    summary:
      'Server-sent events: snapshot, run, event and account say that something else is to be asked for, ping that the connection stands',
    role: 'person',
    input: z.strictObject({}),
    answer: streamed,
    streams: { type: 'text/event-stream' },
  }),
};
