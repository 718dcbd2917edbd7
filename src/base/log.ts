import { createRequire } from 'node:module';
import pino, { type DestinationStream, type Logger } from 'pino';
import { printable, printableJson, printableLines } from './printable.ts';

const require = createRequire(import.meta.url);

export type Log = Logger;

/** stderr: stdout carries the result of a command and nothing else. */
const STDERR = 2;

// No secret is ever passed to the log; this is for the day on which a whole request or error is.
const secretKeys = [
  'token',
  'access_token',
  'accessToken',
  'refresh_token',
  'verification_token',
  'verificationToken',
  'secret',
  'secretKey',
  'client_secret',
  'clientSecret',
  'password',
  'authorization',
  'Authorization',
  'cookie',
  '["set-cookie"]',
];

const atDepths = (key: string) => ['', '*.', '*.*.', '*.*.*.'].map(above => `${above}${key}`.replace('.[', '['));

/**
 * The log: JSON lines, or readable ones where a person looks on. Written synchronously, so that no line is lost when the
 * process ends or is killed; `stream` is for tests.
 */
export function createLog({ level, pretty, stream }: { level: string; pretty: boolean; stream?: DestinationStream }): Log {
  const output = stream ?? openStderr();
  const options = { level, redact: { paths: secretKeys.flatMap(atDepths), censor: '[redacted]' } };
  if (!pretty)
    return pino(options, {
      write: line => {
        keep(line);
        output.write(printableJson(line));
      },
    });
  // Loaded only where a person looks on.
  const { prettyFactory }: typeof import('pino-pretty') = require('pino-pretty');
  // Not pino-pretty's own stream: it passes lines on a moment later, and a process that exits at once would lose them.
  const colorize = stream === undefined && process.stderr.isTTY && process.stderr.hasColors();
  const format = prettyFactory({ colorize, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' });
  return pino(options, {
    write: line => {
      keep(line);
      output.write(format(printableIn(JSON.parse(line))));
    },
  });
}

/** Of lines that cannot be written yet. */
const MOST_WAITING_BYTES = 1_048_576;

/** Where it cannot be written, on a full disk or a terminal that is gone, whoever logs goes on. */
function openStderr(): DestinationStream {
  const output = pino.destination({ dest: STDERR, sync: true, maxLength: MOST_WAITING_BYTES });
  output.on('error', () => undefined);
  return output;
}

const KEPT_LINES = 500;
const kept: string[] = [];

function keep(line: string): void {
  if (kept.push(printableJson(line)) > KEPT_LINES) kept.shift();
}

/** The last lines that this process has logged, JSON each, the newest last. */
export const recentLines = (): readonly string[] => kept;

/** They may name who is to be forgotten. */
export function forgetLines(): void {
  kept.length = 0;
}

/** The same with every text in it, names too, made printable. */
function printableIn(value: unknown): unknown {
  if (typeof value === 'string') return printableLines(value);
  if (Array.isArray(value)) return value.map(printableIn);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [printable(name), printableIn(inside)]));
}

/** A log that says nothing, for tests. */
export const silentLog: Log = pino({ level: 'silent' });
