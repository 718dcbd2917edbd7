import { styleText } from 'node:util';
import { dayNumberOf, formatDay } from '../../../schema/instant.ts';
import { READ_MISSING } from '../../app/fixes.ts';
import { type Group, groupBy } from '../../base/items.ts';
import { printable } from '../../base/printable.ts';
import { type CoverageRun, type CoverageState, STATES } from '../../ledger/coverage.ts';
import { type CoverageReport, findMissing, findReadEarly, MISSING } from '../../sync/coverage.ts';
import { formatCount } from './print.ts';

/** How a state is shown: its character, its name, its colour. */
const SHOWN: Record<CoverageState, { mark: string; name: string; colour: Parameters<typeof styleText>[0] }> = {
  stored: { mark: '#', name: 'stored', colour: 'green' },
  empty: { mark: '.', name: 'empty at the service', colour: 'gray' },
  not_offered: { mark: '-', name: 'not offered', colour: 'gray' },
  not_authorised: { mark: 'x', name: 'not authorised', colour: 'magenta' },
  failed: { mark: 'F', name: 'failed', colour: 'red' },
  suspicious: { mark: '?', name: 'suspicious', colour: 'red' },
  pending: { mark: '~', name: 'pending', colour: 'cyan' },
  not_asked: { mark: '_', name: 'not asked', colour: 'yellow' },
};

const COLUMNS = 80;
const NAME = 18;
const DAYS = 60;
/** Of one reason; --json has them all. */
const MOST_PLACES = 12;

/**
 * A calendar of at most 80 columns: for each account blocks of 60 days, in them a line for each collection and a character for each day;
 * below it a legend, a summary, and the reasons of what is not well.
 */
export function coverageLines(report: CoverageReport, colours: boolean): string[] {
  const { runs } = report;
  const paint = (state: CoverageState, text: string) => (colours ? styleText(SHOWN[state].colour, text, { validateStream: false }) : text);
  const users = groupBy(runs, run => run.user_id);
  return [
    ...[...users].flatMap(([user, own]) => accountLines(user, own, report, paint)),
    ...legend(paint),
    '',
    ...wrap(summary(report), ''),
    ...(findMissing(report).length ? wrap(READ_MISSING, '') : []),
    ...reasonLines(runs),
  ];
}

type Paint = (state: CoverageState, text: string) => string;

function accountLines(user: string, runs: Group<CoverageRun>, { from, to }: CoverageReport, paint: Paint): string[] {
  const collections = groupBy(runs, run => run.collection);
  const [first, last] = [dayNumberOf(from), dayNumberOf(to)];
  const lines = [user];
  for (let start = first; start <= last; start += DAYS) {
    const end = Math.min(start + DAYS - 1, last);
    lines.push(`${padName('')} ${ruler(start, end)}`);
    for (const [name, own] of collections) {
      if (own[0].from !== null || start === first)
        lines.push(`${padName(name)} ${own.map(run => cellsOf(run, start, end, paint)).join('')}`);
    }
    lines.push('');
  }
  return lines;
}

/** Of the days from a first to a last one; what belongs to no day has one cell. */
function cellsOf({ from, to, state }: CoverageRun, start: number, end: number, paint: Paint): string {
  const count = from === null || to === null ? 1 : Math.min(dayNumberOf(to), end) - Math.max(dayNumberOf(from), start) + 1;
  return count > 0 ? paint(state, SHOWN[state].mark.repeat(count)) : '';
}

const padName = (name: string) => (name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name.padEnd(NAME));

/** The first day, and each month above its first day where there is room. */
function ruler(start: number, end: number): string {
  let text = formatDay(start);
  for (let day = start + text.length + 1; day <= end; day++) {
    const name = formatDay(day);
    if (name.endsWith('-01')) text = text.padEnd(day - start) + name.slice(0, 7);
  }
  return text.slice(0, COLUMNS - NAME - 1);
}

function legend(paint: Paint): string[] {
  const parts = STATES.map(state => ({ plain: `${SHOWN[state].mark} ${SHOWN[state].name}`, state }));
  return [parts.slice(0, 4), parts.slice(4)].map(row =>
    row.map(({ plain, state }) => paint(state, plain.slice(0, 1)) + plain.slice(1)).join('  '),
  );
}

function summary(report: CoverageReport): string {
  const { runs, from, to } = report;
  const counts = STATES.map(state => ({ state, count: sum(runs.filter(run => run.state === state)) })).filter(({ count }) => count > 0);
  const early = sum(findReadEarly(report));
  const beside = (state: CoverageState) =>
    state === 'stored' && early ? ` (${formatCount(early)} last read before the day was over)` : '';
  const told = counts.map(({ state, count }) => `${formatCount(count)} ${SHOWN[state].name}${beside(state)}`).join(', ');
  return `${from} to ${to}: ${told || 'no account'}`;
}

const sum = (runs: readonly CoverageRun[]) => runs.reduce((count, run) => count + daysIn(run), 0);

/** What belongs to no day counts once. */
const daysIn = ({ from, to }: CoverageRun) => (from === null || to === null ? 1 : dayNumberOf(to) - dayNumberOf(from) + 1);

/** Each state and reason with the places where it is so. */
function reasonLines(runs: readonly CoverageRun[]): string[] {
  const told = runs.filter(({ state, reason }) => isTrouble(state) || (state === 'stored' && reason !== null));
  const groups = [...groupBy(told, ({ state, reason }) => JSON.stringify([STATES.indexOf(state), reason]))];
  return groups
    .toSorted(([a], [b]) => Number(JSON.parse(b)[0]) - Number(JSON.parse(a)[0]))
    .flatMap(([, group]) => {
      const [{ state, reason }] = group;
      const places = [...groupBy(group, ({ user_id, from, to }) => `${user_id} ${daysText(from, to)}`.trimEnd())].map(
        ([place, same]) => `${place}: ${same.map(({ collection }) => collection).join(', ')}`,
      );
      const more = places.length - MOST_PLACES;
      return [
        '',
        ...wrap(`${SHOWN[state].name}${reason === null ? '' : `: ${printable(reason)}`}`, ''),
        ...places.slice(0, MOST_PLACES).flatMap(place => wrap(place, '  ')),
        ...(more > 0 ? [`  … and ${more} more: --json shows all`] : []),
      ];
    });
}

const daysText = (from: string | null, to: string | null) => (from === null ? '' : from === to ? from : `${from} to ${to}`);

/** Whether somebody has to do something. */
export const hasTrouble = (report: CoverageReport): boolean =>
  findMissing(report).length > 0 || report.runs.some(({ state }) => isTrouble(state));

const isTrouble = (state: CoverageState): boolean => MISSING.includes(state) || state === 'not_authorised';

/** In lines that fit; a word that does not is cut. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    if (line.trim() && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = `${indent}  `;
    }
    line = line.trim() ? `${line} ${word}` : line + word;
    while (line.length > COLUMNS) {
      lines.push(line.slice(0, COLUMNS));
      line = `${indent}  ${line.slice(COLUMNS)}`;
    }
  }
  return [...lines, line];
}
