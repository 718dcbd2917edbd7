import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { hasPromtool, promtool } from '../support/promtool.ts';
import { killStarted, startRingneck } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';

const { parse } = createRequire(import.meta.resolve('@fastify/swagger'))('yaml') as { parse(text: string): never };
const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const folder = tempFolder();
const RULES = example('prometheus/ringneck.rules.yml');
const TOKEN = 'a-token-of-the-scraper';

const source = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('$' + '{datasource}') });
/** What Grafana needs of a dashboard: it publishes no JSON schema of all panels that a program could check with. */
const dashboardSchema = z.object({
  uid: z.string().regex(/^[\w-]{1,40}$/),
  title: z.string().min(1),
  schemaVersion: z.number().int().min(36),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  templating: z.strictObject({ list: z.array(z.looseObject({ name: z.string(), type: z.enum(['datasource', 'query']) })) }),
  panels: z.array(
    z.strictObject({
      id: z.number().int().positive(),
      title: z.string().min(1),
      description: z.string(),
      type: z.enum(['stat', 'timeseries', 'table']),
      datasource: source,
      gridPos: z.strictObject({
        h: z.number().int().positive(),
        w: z.number().int().min(1).max(24),
        x: z.number().int().min(0).max(23),
        y: z.number().int().min(0),
      }),
      fieldConfig: z.strictObject({
        defaults: z.strictObject({
          unit: z.enum(['s', 'short', 'bytes', 'reqps']),
          custom: z.strictObject({ spanNulls: z.literal(false) }).optional(),
        }),
        overrides: z.tuple([]),
      }),
      targets: z
        .array(
          z.strictObject({
            refId: z.string().regex(/^[A-Z]$/),
            datasource: source,
            expr: z.string().min(1),
            legendFormat: z.string(),
            instant: z.boolean().optional(),
            format: z.literal('table').optional(),
          }),
        )
        .min(1),
    }),
  ),
});
const dashboard = dashboardSchema.parse(JSON.parse(readFileSync(example('grafana/ringneck.json'), 'utf8')));
const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] };
const inDashboard = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
const inRules = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));

let scraped = '';

beforeAll(async () => {
  const env = {
    RINGNECK_DATA: join(folder, 'data'),
    RINGNECK_PORT: '0',
    RINGNECK_CONSOLE_PORT: '0',
    RINGNECK_METRICS_TOKEN: TOKEN,
    RINGNECK_SERVICE_URL: 'http://127.0.0.1:9',
  };
  mkdirSync(env.RINGNECK_DATA, { mode: 0o700 });
  const up = startRingneck(['up'], { env });
  await up.said(/"msg":"up"/);
  const [, url] = /"console":"([^"]+)"/.exec(up.stderr)!;
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  scraped = await response.text();
  up.kill('SIGTERM');
  expect([response.status, (await up.end()).code]).toEqual([200, 0]);
});
afterAll(killStarted);

test('panels stand side by side, not on one another', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.has(`${x} ${y}`), title).toBe(false);
        taken.add(`${x} ${y}`);
      }
    }
  }
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});

test('ringneck up gives every metric that the alerts and the dashboard ask for', () => {
  const types = new Map([...scraped.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
  const named = [...inRules, ...inDashboard].flatMap(expr => expr.match(/\b(ringneck|process)_\w+/g) ?? []);
  expect(new Set(named).size).toBeGreaterThan(15);
  const missing = named.filter(name => !types.has(name) && types.get(name.replace(/_(bucket|sum|count)$/, '')) !== 'histogram');
  expect(missing).toEqual([]);
  expect(scraped).not.toContain(TOKEN);
});

test.runIf(hasPromtool)('Prometheus finds nothing wrong in what is scraped', () => {
  expect(promtool(['check', 'metrics'], scraped)).toBe('');
});

test.runIf(hasPromtool)('Prometheus takes the configuration, the alerts and every expression of the dashboard', () => {
  promtool(['check', 'config', '--syntax-only', example('prometheus/prometheus.yml')]);
  promtool(['check', 'rules', RULES]);
  const rules = inDashboard.map((expr, index) => ({
    record: `dashboard:${index}`,
    expr: expr.replaceAll('$__rate_interval', '2m').replaceAll('$instance', '.*'),
  }));
  const path = join(folder, 'dashboard.yml');
  writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  expect(promtool(['check', 'rules', path])).toContain(`SUCCESS: ${rules.length} rules found`);
});

test.runIf(hasPromtool)('each alert fires when it should, and none when all is well', () => {
  copyFileSync(RULES, join(folder, 'ringneck.rules.yml'));
  const path = join(folder, 'ringneck.rules.test.yml');
  copyFileSync(fileURLToPath(new URL('ringneck.rules.test.yml', import.meta.url)), path);
  promtool(['test', 'rules', path]);
  // All of them are spoken of there.
  const told = readFileSync(path, 'utf8');
  for (const { alert } of groups.flatMap(({ rules }) => rules)) expect(told).toContain(alert);
});
