import { describe, expect, it } from 'vitest';
import { findDayNumber } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { illnessOn } from '../../../src/simulator/users/illness.ts';
import { createPerson } from '../../../src/simulator/users/person.ts';
import { allOf, yearOf } from './conformity.ts';

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const day = (text: string) => findDayNumber(text)!;

it('people are ill a few times a year, three to eight days each, and the worst comes on the second or third', () => {
  const lengths: number[] = [];
  const worst: number[] = [];
  for (let index = 0; index < 20; index++) {
    const person = createPerson(7, index);
    let episode: number[] = [];
    // Of an illness that began earlier nothing is known.
    let known = false;
    for (let of = day('2021-01-01'); of <= day('2025-12-31'); of++) {
      const { severity } = illnessOn(person, of);
      expect(severity).toBeLessThanOrEqual(1);
      if (severity > 0) episode.push(severity);
      else if (known && episode.length > 0) {
        lengths.push(episode.length);
        worst.push(episode.indexOf(Math.max(...episode)));
      }
      if (severity === 0) {
        known = true;
        episode = [];
      }
    }
  }
  // In a hundred years.
  expect(lengths.length).toBeGreaterThan(250);
  expect(lengths.length).toBeLessThan(450);
  expect([Math.min(...lengths), Math.max(...lengths)]).toEqual([3, 8]);
  expect(new Set(worst)).toEqual(new Set([1, 2]));
});

describe('on a bad day', () => {
  const people = yearOf(4);
  const documentsOf = (userId: string, resource: string) => allOf(people, userId, resource);

  /** The mean of a figure over the bad days of everybody, and over the healthy ones, each against the person's own mean. */
  function compare(resource: string, figure: (document: WireDocument) => unknown): { bad: number; healthy: number } {
    const bad: number[] = [];
    const healthy: number[] = [];
    for (const person of people.persons) {
      const known = documentsOf(person.userId, resource).flatMap(document => {
        const value = figure(document);
        return typeof value === 'number' ? [{ value, severity: illnessOn(person, day(document.day as string)).severity }] : [];
      });
      const usual = mean(known.map(({ value }) => value));
      for (const { value, severity } of known) {
        if (severity > 0.5) bad.push(value - usual);
        else if (severity === 0) healthy.push(value - usual);
      }
    }
    expect(bad.length).toBeGreaterThan(20);
    return { bad: mean(bad), healthy: mean(healthy) };
  }
  const ofNights = (key: string) => (document: WireDocument) => (document.type === 'long_sleep' ? document[key] : undefined);

  it('the temperature is up by half a degree and more', () => {
    const { bad, healthy } = compare('daily_readiness', document => document.temperature_deviation);
    expect(bad - healthy).toBeGreaterThan(0.5);
    expect(bad - healthy).toBeLessThan(1.8);
  });

  it.each([
    ['lowest_heart_rate', 3],
    ['average_breath', 0.8],
    ['time_in_bed', 900],
  ])('%s is up', (key, by) => {
    const { bad, healthy } = compare('sleep', ofNights(key));
    expect(bad - healthy).toBeGreaterThan(by);
  });

  it('the variability of the heart rate is down, and so is readiness, with what it is made of', () => {
    const hrv = compare('sleep', ofNights('average_hrv'));
    expect(hrv.bad).toBeLessThan(hrv.healthy - 5);
    for (const figure of [
      (document: WireDocument) => document.score,
      (document: WireDocument) => (document.contributors as Record<string, unknown>).body_temperature,
      (document: WireDocument) => (document.contributors as Record<string, unknown>).resting_heart_rate,
      (document: WireDocument) => (document.contributors as Record<string, unknown>).hrv_balance,
    ]) {
      const { bad, healthy } = compare('daily_readiness', figure);
      expect(bad).toBeLessThan(healthy - 6);
    }
  });

  it('nobody trains, and everybody walks less', () => {
    const steps = compare('daily_activity', document => document.steps);
    expect(steps.bad).toBeLessThan(steps.healthy - 2000);
    const high = compare('daily_activity', document => document.high_activity_time);
    expect(high.bad).toBeLessThan(high.healthy);
  });
});
