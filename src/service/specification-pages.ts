import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';

/** Serves the OpenAPI document at /openapi.json, and a page to browse it at /docs. */
export function serveSpecification(service: FastifyInstance, document: Record<string, unknown>): void {
  const text = JSON.stringify(document);
  service.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
  service.register(swagger, { mode: 'static', specification: { document: document as never } });
  service.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { docExpansion: 'none' } });
}
