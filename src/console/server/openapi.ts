import { z } from 'zod';
import { version } from '../../base/version.ts';
import { errorAnswer, type Route } from '../api/route.ts';
import { routes } from '../api/routes.ts';

type Json = Record<string, unknown>;

interface Place {
  /** The path in front of all others, or nothing. */
  prefix: string;
  /** The name of the session's cookie. */
  cookie: string;
}

/** The OpenAPI 3.1 document of what the page asks, made of the declarations that the server checks requests and answers by. */
export function describeConsole({ prefix, cookie }: Place) {
  const paths: Record<string, Json> = {};
  for (const [name, declared] of Object.entries<Route>(routes)) {
    const [method = '', pattern = ''] = name.split(' ');
    const path = `/${pattern.replace(/:(\w+)/g, '{$1}')}`;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeRoute(name, declared) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ringneck console',
      version,
      description:
        'What the page asks of its server. Opened by the link of `ringneck console`; x-role is who may ask at least: person, reader or operator. What changes something must come with the Origin of the console.',
    },
    servers: [{ url: `${prefix}/api` }],
    paths,
    components: {
      schemas: { Error: schemaOf(errorAnswer, 'output') },
      responses: {
        Error: {
          description: 'Not answered: why, and what to do next.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: cookie },
        csrf: { type: 'apiKey', in: 'header', name: 'x-csrf', description: 'The csrf of `GET /session`.' },
      },
    },
  };
}

function describeRoute(name: string, declared: Route): Json {
  const [method = '', pattern = ''] = name.split(' ');
  const { properties, required } = schemaOf(declared.input, 'input') as { properties: Record<string, Json>; required?: string[] };
  const inPath = [...pattern.matchAll(/:(\w+)/g)].map(([, key]) => key ?? '');
  const others = Object.keys(properties).filter(key => !inPath.includes(key));
  const parameter = (place: 'path' | 'query') => (key: string) => ({
    name: key,
    in: place,
    required: place === 'path' || Boolean(required?.includes(key)),
    schema: properties[key],
  });
  const isSent = method === 'POST';
  const needed = others.filter(key => required?.includes(key));
  const body = {
    type: 'object',
    properties: Object.fromEntries(others.map(key => [key, properties[key]])),
    ...(needed.length ? { required: needed } : {}),
  };
  const parameters = [...inPath.map(parameter('path')), ...(isSent ? [] : others.map(parameter('query')))];
  return {
    operationId: name.replace(/[^A-Za-z]+/g, '_'),
    summary: declared.summary,
    ...(declared.role ? { 'x-role': declared.role, security: [method === 'GET' ? { session: [] } : { session: [], csrf: [] }] } : {}),
    ...(parameters.length ? { parameters } : {}),
    ...(isSent ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: {
      200: { description: declared.summary, content: contentOf(declared) },
      ...(declared.ofSnapshot ? { 304: { description: 'As the ETag says that it is known: no other snapshot was published.' } } : {}),
      default: { $ref: '#/components/responses/Error' },
    },
  };
}

function contentOf({ answer, streams }: Route): Json {
  if (!streams) return { 'application/json': { schema: schemaOf(answer, 'output') } };
  const { type, line } = streams;
  return { [type]: { schema: line ? { ...schemaOf(line, 'output'), description: 'Each line.' } : { type: 'string' } } };
}

function schemaOf(declared: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(declared, { io });
  return schema;
}
