import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, inject, test } from 'vitest';

const sizeOf = (folder: string, parts: readonly string[]) =>
  parts.map(name => gzipSync(readFileSync(join(folder, 'assets', name)), { level: 9 }).length).reduce((sum, size) => sum + size, 0);

test('the first load is at most 60 kB compressed, and the editor, which comes with its screen, at most 135 kB', () => {
  const folder = join(inject('compiled'), 'console');
  const names = readdirSync(join(folder, 'assets')).filter(name => /\.(js|css)$/.test(name));
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const first = names.filter(name => page.includes(name));
  const editor = names.filter(name => name.startsWith('sql-screen-'));
  expect(first.map(name => name.replace(/-[^.]*/, '')).sort()).toEqual(['index.css', 'index.js']);
  expect(sizeOf(folder, first)).toBeLessThanOrEqual(60_000);
  expect(editor).toHaveLength(2);
  expect(sizeOf(folder, editor)).toBeLessThanOrEqual(135_000);
  // Of these the checks of the server's answers would be the first to slip in.
  for (const name of names) expect(readFileSync(join(folder, 'assets', name), 'utf8')).not.toContain('ZodError');
});
