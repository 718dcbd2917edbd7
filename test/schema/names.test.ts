import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';

const ROOT = new URL('../../', import.meta.url);

test('outside schema/ and the simulator no source names a document type as a value, or imports one', () => {
  // `sleep` and `session` are words of their own.
  const names = resources.map(({ name }) => name).filter(name => name.includes('_'));
  const named = new RegExp(`['"](${names.join('|')})['"]|schema/resources/(?!heart-rate|personal-info|contributors)`);
  const files = ['src', 'jobs'].flatMap(folder =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).map(path => `${folder}/${path}`),
  );
  const sources = files.filter(path => path.endsWith('.ts') && !path.startsWith('src/simulator/'));
  expect(sources.length).toBeGreaterThan(200);
  expect(sources.filter(path => named.test(readFileSync(new URL(path, ROOT), 'utf8')))).toEqual([]);
});
