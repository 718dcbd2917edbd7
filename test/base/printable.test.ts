import { expect, test } from 'vitest';
import { DATA_TYPES } from '../../schema/webhook.ts';
import { createLog } from '../../src/base/log.ts';
import { printable, printableJson, printableLines } from '../../src/base/printable.ts';
import { formatEvent } from '../../src/cli/terminal/event-line.ts';
import { formatTable } from '../../src/cli/terminal/print.ts';

/** One of each kind: C0, DEL, C1, and all that turn the direction of a text or break a line. */
const BAD = '\u0000\u0007\u001b[31m\u007f\u0085\u009b\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069';
const DANGEROUS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;
const NAME = 'Zoë 😀 \u0627\u0644';

test('what could steer a terminal is shown as its code, and other text as it is', () => {
  expect(printable('a\u001b[2J\u202eb\nc\td')).toBe('a\\u001b[2J\\u202eb\\nc\\td');
  expect(printableLines('a\nb\rc\u2028d')).toBe('a\nb\\rc\\u2028d');
  for (const show of [printable, printableLines]) expect(show(BAD)).not.toMatch(DANGEROUS);
  expect(printable(NAME)).toBe(NAME);
});

test('JSON keeps its value', () => {
  for (const indent of [undefined, 2]) {
    const json = printableJson(JSON.stringify({ [BAD]: [BAD, NAME] }, undefined, indent));
    expect(json.replaceAll('\n', '')).not.toMatch(DANGEROUS);
    expect(JSON.parse(json)).toEqual({ [BAD]: [BAD, NAME] });
  }
});

test('a table has one line for each row, whatever its cells hold', () => {
  const table = formatTable(['name', 'reason'], [[`a\nb${BAD}`, null]]);
  expect(table.split('\n')).toHaveLength(2);
  expect(table.replaceAll('\n', '')).not.toMatch(DANGEROUS);
});

test('an event is one line', () => {
  const at = '2025-01-01T00:00:00Z';
  const line = formatEvent({ at, event_type: 'update', data_type: `sl\neep${BAD}`, user_id: BAD, outcome: 'stored', ms: 1 } as never);
  expect(line).not.toMatch(DANGEROUS);
});

test('events of all kinds of data have their accounts below each other', () => {
  const at = '2025-01-01T00:00:00Z';
  const lines = DATA_TYPES.map(data_type =>
    formatEvent({ at, event_type: 'update', data_type, user_id: 'ada', outcome: 'stored', ms: 1 } as never),
  );
  expect(new Set(lines.map(line => line.indexOf(' ada '))).size).toBe(1);
});

test.each([false, true])('a log line does nothing to a terminal but show (pretty %s)', pretty => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty, stream: { write: line => void lines.push(line) } });
  log.info({ reason: BAD, nested: { [BAD]: [BAD] }, err: new Error(BAD) }, BAD);
  expect(lines.join('').replaceAll('\n', '')).not.toMatch(DANGEROUS);
  if (!pretty) expect(JSON.parse(lines[0]!)).toMatchObject({ reason: BAD, nested: { [BAD]: [BAD] }, msg: BAD });
});
