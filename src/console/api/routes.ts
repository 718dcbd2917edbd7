import type { z } from 'zod';
import { aboutRoutes } from './about.ts';
import { actionRoutes } from './actions.ts';
import { coverageRoutes } from './coverage.ts';
import { dayRoutes } from './day.ts';
import { groupRoutes } from './group.ts';
import { nightRoutes } from './night.ts';
import { operationRoutes, sessionListRoutes } from './operations.ts';
import { peopleRoutes } from './people.ts';
import { rasterRoutes } from './raster.ts';
import { sessionRoutes } from './session.ts';
import { sqlRoutes } from './sql.ts';
import { trendRoutes } from './trends.ts';

/** All that the page asks, by method and path below `/api/`. The page knows their types alone, the server checks what comes and goes. */
export const routes = {
  ...sessionRoutes,
  ...peopleRoutes,
  ...nightRoutes,
  ...trendRoutes,
  ...dayRoutes,
  ...rasterRoutes,
  ...coverageRoutes,
  ...groupRoutes,
  ...sqlRoutes,
  ...actionRoutes,
  ...operationRoutes,
  ...sessionListRoutes,
  ...aboutRoutes,
};

export type Routes = typeof routes;
export type RouteName = keyof Routes;
export type InputOf<Name extends RouteName> = z.input<Routes[Name]['input']>;
export type ParsedInputOf<Name extends RouteName> = z.output<Routes[Name]['input']>;
export type AnswerOf<Name extends RouteName> = z.output<Routes[Name]['answer']>;
