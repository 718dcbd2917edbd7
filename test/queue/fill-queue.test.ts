import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { type FillOptions, QueueFilling } from '../../src/queue/fill-queue.ts';
import { type NewJob, QueueUnavailable } from '../../src/queue/queues.ts';
import { until } from '../support/until.ts';

/** A journal in memory, and a queue whose additions the test lets go one by one. */
function setUp(keys: readonly string[] = [], checkMs = 1_000_000, more: Partial<FillOptions> = {}) {
  const held = new Map(keys.map(key => [key, `text of ${key}`]));
  const state: { ids: Set<string>; next?: Set<string>; reads: number } = {
    reads: 0,
    ids: new Set([...keys.map(key => `id-${key}`), ...(more.held?.values() ?? [])]),
  };
  const additions: { jobs: readonly NewJob[]; resolve(): void; reject(error: Error): void }[] = [];
  const forgotten: string[] = [];
  const lines: string[] = [];
  const filling = new QueueFilling({
    journal: {
      find: key => held.get(key),
      has: key => held.has(key),
      keys: () => [...held.keys()],
      finish: key => void held.delete(key),
      get size() {
        return held.size;
      },
    },
    queues: {
      addAll: (_, jobs) =>
        new Promise<void>((resolve, reject) => {
          additions.push({ jobs, resolve, reject });
        }),
      forget: async (_, ids) => void forgotten.push(...ids),
      promote: async () => {},
      ids: async () => {
        state.reads++;
        const ids = state.next ?? state.ids;
        delete state.next;
        return ids;
      },
    },
    queue: 'q',
    idOf: key => `id-${key}`,
    jobOf: (key, text) => ({ name: key, data: text }),
    log: createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(JSON.parse(line).msg) } }),
    checkMs,
    againMs: 1,
    ...more,
  });
  onTestFinished(async () => {
    for (const { resolve } of additions) resolve();
    await filling.close();
  });
  return {
    state,
    additions,
    forgotten,
    lines,
    filling,
    append(key: string) {
      held.set(key, `text of ${key}`);
      filling.add(key);
    },
    settle(key: string) {
      held.delete(key);
    },
  };
}

const names = (jobs: readonly NewJob[]) => jobs.map(({ name }) => name);
const turn = () => new Promise(resolve => setImmediate(resolve));

test('what arrives while an addition is under way goes into the next one together, 200 at most', async () => {
  const { additions, append } = setUp();
  append('lone');
  expect(additions.map(({ jobs }) => jobs)).toEqual([[{ name: 'lone', data: 'text of lone' }]]);
  for (let i = 0; i < 250; i++) append(`n-${i}`);
  await turn();
  expect(additions).toHaveLength(1);
  additions[0]!.resolve();
  await turn();
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1, 200]);
  expect(names(additions[1]!.jobs).slice(0, 2)).toEqual(['n-0', 'n-1']);
  additions[1]!.resolve();
  await turn();
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1, 200, 50]);
  additions[2]!.resolve();
  await turn();
  append('later');
  expect(names(additions[3]!.jobs)).toEqual(['later']);
});

test('it begins with all that waits, and leaves out what is settled meanwhile', async () => {
  const { additions, settle } = setUp(Array.from({ length: 250 }, (_, i) => `n-${i}`));
  settle('n-240');
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([200]);
  additions[0]!.resolve();
  await turn();
  expect(names(additions[1]!.jobs)).toEqual(expect.arrayContaining(['n-200', 'n-249']));
  expect(additions[1]!.jobs).toHaveLength(49);
});

test('what the queue refuses is tried again until it takes it, and both are said once', async () => {
  const { additions, append, lines } = setUp();
  append('a');
  for (let i = 0; i < 3; i++) {
    additions[i]!.reject(new QueueUnavailable('Redis refuses (READONLY); see its own log, then try again'));
    append(`b-${i}`);
    await until('it is tried again', () => additions.length === i + 2);
  }
  expect(names(additions[3]!.jobs)).toEqual(['a', 'b-0', 'b-1', 'b-2']);
  additions[3]!.resolve();
  await until('it is told', () => lines.length === 2);
  expect(lines).toEqual(['the queue takes no work: what was accepted is kept and waits for it', 'the queue takes work again']);
});

test('what the queue has lost is enqueued again, whatever else it holds', async () => {
  const { additions, forgotten, state, settle, lines } = setUp(['a', 'b', 'c'], 5);
  additions[0]!.resolve();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(additions).toHaveLength(1);
  settle('a');
  state.ids = new Set(['id-b', 'id-c']);
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(additions).toHaveLength(1);

  // As many as there are to do, and one of them another.
  state.ids = new Set(['id-b', 'id-settled-and-looked-at-again', 'id-another']);
  await until('it is filled', () => additions.length === 2);
  expect(names(additions[1]!.jobs)).toEqual(['c']);
  expect(new Set(forgotten)).toEqual(new Set(['id-c']));
  expect(new Set(lines)).toEqual(new Set(['the queue has lost what it held: what is not finished is enqueued again']));
});

test('what one reading of the queue has missed, because it went from one state to another meanwhile, is not lost', async () => {
  const { additions, forgotten, state, lines } = setUp(['a', 'b'], 5);
  additions[0]!.resolve();
  await until('the queue is looked at', () => state.reads > 2);
  const { reads } = state;
  state.next = new Set(['id-b']);
  await until('it is looked at again', () => state.reads > reads + 3);
  expect(additions).toHaveLength(1);
  expect(forgotten).toEqual([]);
  expect(lines).toEqual([]);
});

test('nothing is added after it was closed', async () => {
  const { additions, append, filling } = setUp();
  append('a');
  const closed = filling.close();
  additions[0]!.resolve();
  await closed;
  append('b');
  await turn();
  expect(additions).toHaveLength(1);
});

const together = {
  togetherOf: (keys: readonly string[]) => ({
    name: keys.join(' '),
    data: [...keys],
    opts: { jobId: `id-${keys[0]}-${keys.at(-1)}` },
  }),
};

test('where they may share a job, what arrives at once does, fifty at most; one that arrives alone has its own', async () => {
  const { additions, append } = setUp([], 1_000_000, together);
  append('lone');
  expect(names(additions[0]!.jobs)).toEqual(['lone']);
  for (let i = 0; i < 120; i++) append(`n-${i}`);
  additions[0]!.resolve();
  await turn();
  expect(additions[1]!.jobs.map(({ opts }) => opts?.jobId)).toEqual(['id-n-0-n-49', 'id-n-50-n-99', 'id-n-100-n-119']);
  expect(additions[1]!.jobs[2]!.data).toEqual(Array.from({ length: 20 }, (_, i) => `n-${100 + i}`));
});

test('what shared a job is lost with it, unless it has one of its own by then', async () => {
  const { additions, forgotten, state, filling, settle, lines } = setUp(['a', 'b', 'c'], 5, together);
  expect(names(additions[0]!.jobs)).toEqual(['a b c']);
  state.ids = new Set(['id-a-c']);
  additions[0]!.resolve();
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(additions).toHaveLength(1);
  settle('a');
  filling.isAlone('b');
  state.ids = new Set(['id-b']);
  await until('what has no job is enqueued again', () => additions.length === 2);
  expect(names(additions[1]!.jobs)).toEqual(['c']);
  expect(forgotten).toEqual(['id-a-c']);
  expect(lines).toEqual(['the queue has lost what it held: what is not finished is enqueued again']);
});

test('what the queue holds from before is not enqueued again while its job is there', async () => {
  const held = new Map([
    ['a', 'id-a-b'],
    ['b', 'id-a-b'],
  ]);
  const { additions, state } = setUp(['a', 'b', 'c'], 5, { ...together, held });
  expect(names(additions[0]!.jobs)).toEqual(['c']);
  state.ids = new Set(['id-a-b', 'id-c']);
  additions[0]!.resolve();
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(additions).toHaveLength(1);
  state.ids = new Set(['id-c']);
  await until('their job is gone', () => additions.length === 2);
  expect(names(additions[1]!.jobs)).toEqual(['a b']);
});

/** A queue that takes everything at once, worked off by the test; of whom an entry is says its key up to the first hyphen. */
function setUpBounded(keys: readonly string[], most: number, more: Partial<FillOptions> = {}) {
  const open = new Map(keys.map(key => [key, key]));
  const jobs = new Map<string, readonly string[]>();
  const settled: string[] = [];
  const inQueue = () => [...jobs.values()].flat().filter(key => open.has(key));
  let largest = 0;
  const filling = new QueueFilling({
    journal: {
      find: key => open.get(key),
      has: key => open.has(key),
      keys: () => [...open.keys()],
      finish: key => void open.delete(key),
      get size() {
        return open.size;
      },
    },
    queues: {
      addAll: async (_, added) => {
        await turn();
        for (const { data, opts } of added) jobs.set(opts!.jobId!, data as string[]);
        largest = Math.max(largest, inQueue().length);
      },
      forget: async () => {},
      promote: async () => {},
      ids: async () => new Set(jobs.keys()),
    },
    queue: 'q',
    idOf: key => key,
    jobOf: key => ({ name: key, data: [key], opts: { jobId: key } }),
    togetherOf: some => ({ name: 'together', data: some, opts: { jobId: some.join() } }),
    bound: { most, mostOfOne: most, ownerOf: text => text.split('-')[0]! },
    log: createLog({ level: 'silent', pretty: false }),
    checkMs: 5,
    againMs: 1,
    ...more,
  });
  onTestFinished(() => filling.close());
  return {
    filling,
    jobs,
    settled,
    inQueue,
    largest: () => largest,
    open,
    append(key: string) {
      open.set(key, key);
      filling.add(key);
    },
    settle(key: string) {
      settled.push(key);
      filling.finish(key);
    },
    /** Works off one job. */
    work() {
      const [job] = jobs;
      if (!job) return;
      for (const key of job[1]) if (open.has(key)) this.settle(key);
      jobs.delete(job[0]);
    },
  };
}

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`);

test('no more than the bound is in the queue, and all that waits is worked off, the oldest first', async () => {
  const harness = setUpBounded(numbered('ada', 5_000), 300);
  await until('it is full', () => harness.inQueue().length === 300);
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(harness.inQueue()).toEqual(numbered('ada', 300));
  await until('all are settled', async () => {
    harness.work();
    await turn();
    return harness.settled.length === 5_000;
  });
  expect(harness.settled).toEqual(numbered('ada', 5_000));
  expect(harness.largest()).toBe(300);
});

test('what a queue loses of a long journal is enqueued again before what has not been in it', async () => {
  const harness = setUpBounded(numbered('ada', 2_000), 300);
  let losses = 0;
  await until('all are settled', async () => {
    harness.work();
    // Every other job.
    if (harness.settled.length > 400 * (losses + 1)) {
      losses++;
      for (const [i, id] of [...harness.jobs.keys()].entries()) if (i % 2) harness.jobs.delete(id);
    }
    await new Promise(resolve => setTimeout(resolve, 2));
    return harness.settled.length === 2_000;
  });
  expect(losses).toBe(4);
  expect(new Set(harness.settled)).toEqual(new Set(numbered('ada', 2_000)));
  // Those that are lost count as held until it is noticed.
  expect(harness.largest()).toBeLessThanOrEqual(300);

  const other = setUpBounded(numbered('ada', 1_000), 300, { checkMs: 5 });
  await until('it is full', () => other.inQueue().length === 300);
  other.jobs.clear();
  await until('it is full again', () => other.inQueue().length === 300);
  expect(other.inQueue()).toEqual(numbered('ada', 300));
});

test('who waits for long keeps nobody else out of a full queue: the first four of each are let in', async () => {
  const harness = setUpBounded([...numbered('ada', 1_000), ...numbered('eva', 10)], 300);
  const of = (name: string) => harness.inQueue().filter(key => key.startsWith(name));
  await until('the first ones are in', () => of('eva').length > 0, 5_000);
  for (const key of numbered('dan', 6)) harness.append(key);
  await until('the first of a newcomer are in', () => of('dan').length > 0, 5_000);
  await new Promise(resolve => setTimeout(resolve, 30));
  expect([of('ada').length, of('eva'), of('dan')]).toEqual([300, numbered('eva', 4), numbered('dan', 4)]);
  harness.settle('dan-0');
  harness.settle('dan-1');
  await until('the last of it are in', () => of('dan').length === 4, 5_000);
  expect(of('dan')).toEqual(['dan-2', 'dan-3', 'dan-4', 'dan-5']);
  // Where there is room again, who has little in the queue has it first.
  for (const key of numbered('ada', 120)) harness.settle(key);
  await until('there was room', () => of('eva').length === 10, 5_000);
  expect(harness.largest()).toBe(308);
});

test('what all have had put off keeps nobody’s next out of a full queue', async () => {
  const owners = Array.from({ length: 10 }, (_, i) => `p${i}`);
  const ownerOf = (text: string) => text.split('-')[0]!;
  const all = owners.flatMap(app => numbered(app, 6));
  const harness = setUpBounded(all, 100, { bound: { most: 30, mostOfOne: 12, ownerOf } });
  await until('the first of each are in', () => harness.inQueue().length >= 40, 5_000);
  for (let i = 0; i < 2; i++) {
    for (const key of harness.inQueue()) harness.filling.putOff(key);
    await until('the next of each are in', () => harness.inQueue().length === 60, 5_000);
  }
  expect(harness.inQueue().toSorted()).toEqual(all.toSorted());
});

test('of one owner only so many are in the queue whose turn it is; what is put off takes nobody his turn', async () => {
  const ownerOf = (text: string) => text.split('-')[0]!;
  const harness = setUpBounded([...numbered('ada', 100), ...numbered('eva', 2)], 100, { bound: { most: 30, mostOfOne: 12, ownerOf } });
  await until('the first are in', () => harness.inQueue().length === 14, 5_000);
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(harness.inQueue().toSorted()).toEqual([...numbered('ada', 12), ...numbered('eva', 2)].toSorted());
  for (const key of numbered('ada', 4)) harness.filling.putOff(key);
  await until('the next are in', () => harness.inQueue().length === 18, 5_000);
  harness.settle('ada-0');
  for (const key of numbered('ada', 12).slice(4)) harness.settle(key);
  await until('the next are in', () => harness.inQueue().includes('ada-23'), 5_000);
  expect(harness.inQueue().filter(key => key.startsWith('ada'))).toHaveLength(15);
  // What waits for long has a bound too.
  for (let i = 0; i < 10; i++) {
    for (const key of harness.inQueue()) harness.filling.putOff(key);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
  expect(harness.inQueue().length).toBeGreaterThan(20);
  expect(harness.inQueue().length).toBeLessThanOrEqual(30);
});

test('what was appended while nobody could be told of it is enqueued all the same, once', async () => {
  const harness = setUpBounded(numbered('ada', 3), 30);
  await until('the first are in', () => harness.inQueue().length === 3, 5_000);
  for (const key of numbered('eva', 3)) harness.open.set(key, key);
  await until('the others are in', () => harness.inQueue().length === 6, 5_000);
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(harness.inQueue().toSorted()).toEqual([...numbered('ada', 3), ...numbered('eva', 3)]);
});

test('the end waits for no look at the queue', async () => {
  let asked = false;
  const ids = () => {
    asked = true;
    return new Promise<Set<string>>(() => {});
  };
  const harness = setUpBounded(numbered('ada', 3), 300, {
    queues: { addAll: async () => {}, forget: async () => {}, promote: async () => {}, ids },
  });
  await until('it is looked', () => asked);
  expect(await Promise.race([harness.filling.close().then(() => 'closed'), new Promise(resolve => setTimeout(resolve, 1_000))])).toBe(
    'closed',
  );
});
