import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'schema/CHOICES.md',
  'examples/README.md',
  ...readdirSync(join(root, 'docs'))
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
];
const read = (page: string) => readFileSync(join(root, page), 'utf8').replaceAll(/^```.*?^```$/gms, '');

interface Link {
  page: string;
  /** From the root; the page itself for a mere anchor. */
  path: string;
  anchor: string | undefined;
}

function linksOf(page: string): Link[] {
  const targets = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  return targets
    .filter(target => !/^https?:/.test(target))
    .map(target => {
      const [path, anchor] = target.split('#');
      return { page, path: path ? posix.normalize(posix.join(posix.dirname(page), path)) : page, anchor };
    });
}

/** The anchors that GitHub gives to headings. */
const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

const links = pages.flatMap(linksOf);

test('every link between the pages leads to a file, and its anchor to a heading', () => {
  expect(links.length).toBeGreaterThan(100);
  expect(links.filter(({ path }) => !existsSync(join(root, path)))).toEqual([]);
  expect(links.filter(({ path, anchor }) => anchor && !anchorsOf(path).includes(anchor))).toEqual([]);
});

test('the package has every page, and whatever they link to', () => {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ files }] = JSON.parse(output) as [{ files: { path: string }[] }];
  const packed = files.map(({ path }) => path);
  const isPacked = (path: string) => packed.some(file => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));
  expect(pages.filter(page => !packed.includes(page))).toEqual([]);
  expect(links.filter(({ path }) => !isPacked(path))).toEqual([]);
  expect(packed.filter(path => /^(?:test|bench|src)\//.test(path))).toEqual([]);
});
