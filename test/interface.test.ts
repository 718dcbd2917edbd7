import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const headings = [...read('docs/interface.md').matchAll(/^##+ (\d(?:\.\d+)?) /gm)].map(([, number]) => number!);

const sources = ['src', 'jobs', 'schema'].flatMap(top =>
  readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(?:ts|sql)$/.test(name))
    .map(name => join(top, name)),
);

/** `(6.2)`, `(2.12, 2.1)`, `(4.1 to 4.3)`, `(specification 2.14)`, `(4.4, rule 1)`: not the numbers that a function is called with. */
const CITED = /(?<![\w)\]])\((?:specification )?((?:\d\.\d{1,2})(?:(?:,| to| and) (?:\d\.\d{1,2}|[^()\n]*))?)\)/g;

const numbersIn = (text: string) => [...text.matchAll(/(?<![\d.])\d\.\d{1,2}(?![\d.])/g)].map(([number]) => number);

function citedIn(path: string): string[] {
  const text = read(path);
  const inProse = [...text.matchAll(CITED)].flatMap(([, inside]) => numbersIn(inside!));
  const declared = [...text.matchAll(/paragraph: '([\d.]+)'|[Ss]ection (\d(?:\.\d+)?)/g)].map(
    ([, paragraph, section]) => paragraph ?? section!,
  );
  return [...inProse, ...declared];
}

test('every section that code cites is a heading of docs/interface.md', () => {
  const cited = sources.flatMap(path => citedIn(path).map(number => ({ path, number })));
  expect(cited.length).toBeGreaterThan(100);
  expect(cited.filter(({ number }) => !headings.includes(number))).toEqual([]);
});

test('every section that CHOICES.md cites is a heading of docs/interface.md', () => {
  const points = [...read('schema/CHOICES.md').matchAll(/^\| ((?:\d(?:\.\d+)?(?:,| to)? )+)/gm)].flatMap(
    ([, numbers]) => numbers!.match(/\d(?:\.\d+)?/g)!,
  );
  const cited = [...points, ...citedIn('schema/CHOICES.md')];
  expect(cited.length).toBeGreaterThan(80);
  expect(cited.filter(number => !headings.includes(number))).toEqual([]);
});

test('no section of docs/interface.md is there twice, and each has its place in the order', () => {
  const order = headings.toSorted(new Intl.Collator('en', { numeric: true }).compare);
  expect(headings).toEqual(order);
  expect(new Set(headings).size).toBe(headings.length);
});
