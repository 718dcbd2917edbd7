import { type Command, InvalidArgumentError } from 'commander';
import { findDayNumber } from '../../schema/instant.ts';

/** The `--help` of each command ends with an example. */
export function withExample(command: Command, ...lines: string[]): Command {
  return command.addHelpText('after', `\nExample:\n${lines.map(line => `  ${line}`).join('\n')}`);
}

export function parseDay(text: string): string {
  if (findDayNumber(text) === undefined) throw new InvalidArgumentError('expected a day, YYYY-MM-DD');
  return text;
}

/** A parser of whole numbers in a range. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return text => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
    return value;
  };
}

/** For options that may be given several times. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value];
