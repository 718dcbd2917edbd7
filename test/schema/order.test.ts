import { expect, test } from 'vitest';
import { inOrder } from '../../schema/resource.ts';
import { SPECIFIED } from '../support/declared.ts';

test('document types are in the order of the specification, those beyond it last, by name', () => {
  const beyond = ['zest', 'hydration'].map(name => ({ ...SPECIFIED[0]!, name, paragraph: undefined }));
  expect(inOrder([...beyond, ...SPECIFIED].toReversed()).map(({ name }) => name)).toEqual([
    ...['daily_readiness', 'daily_sleep', 'daily_activity', 'daily_spo2', 'vo2_max', 'ring_configuration', 'daily_resilience'],
    ...['sleep_time', 'daily_stress', 'sleep', 'session', 'hydration', 'zest'],
  ]);
});
