import { expect, test } from 'vitest';
import { keepSnapshots, pauseAfter } from '../../src/app/snapshot/schedule.ts';

/** Time that passes only when somebody sleeps or works, and what was done when: `refresh 1250`. */
function simulate({ tookMs = 100, until = 60_000 } = {}) {
  let clock = 0;
  const done: string[] = [];
  const warnings: string[] = [];
  const at = new Map<number, () => void>();
  const world = {
    isFresh: true,
    isReading: false,
    failure: undefined as string | undefined,
    at(ms: number, event: () => void) {
      at.set(ms, event);
    },
    done,
    warnings,
  };
  const pass = (ms: number) => {
    const before = clock;
    clock += ms;
    for (const [moment, event] of at) if (moment > before && moment <= clock) event();
  };
  const work = (what: string) => async (mayRebuild?: boolean) => {
    done.push(`${what} ${clock}${mayRebuild === false ? ', no rebuild' : ''}`);
    if (world.failure) throw new Error(world.failure);
    world.isFresh = true;
    pass(tookMs);
  };
  const ended = new Promise<void>(resolve => at.set(until, resolve));
  const start = async () => {
    const schedule = keepSnapshots({
      snapshots: {
        get isFresh() {
          return world.isFresh;
        },
        refresh: work('refresh'),
        publish: work('publish'),
      },
      isReadingMuch: () => world.isReading,
      log: { warn: ({ reason }: { reason: string }) => void warnings.push(reason) } as never,
      now: () => clock,
      sleep: async (ms: number) => {
        await Promise.resolve();
        pass(ms);
      },
    });
    await ended;
    await schedule.close();
  };
  return { world, start };
}

test('nothing is published while nothing changes', async () => {
  const { world, start } = simulate();
  await start();
  expect(world.done).toEqual([]);
});

test('a change is published after the moment in which others may join it', async () => {
  const { world, start } = simulate();
  world.at(5_000, () => {
    world.isFresh = false;
  });
  await start();
  expect(world.done).toEqual(['refresh 5500']);
});

test('however fast changes come, a quick refresh takes a fortieth of the time', async () => {
  const { world, start } = simulate({ until: 10_000 });
  for (let ms = 100; ms < 10_000; ms += 100) {
    world.at(ms, () => {
      world.isFresh = false;
    });
  }
  await start();
  expect(world.done).toEqual(['refresh 750', 'refresh 5350', 'refresh 9950']);
});

test('what changes right after a refresh has begun is there in less than ten seconds, as long as a refresh takes three', () => {
  for (const tookMs of [50, 500, 1_000, 2_000, 3_000]) {
    // Asked for a moment after the first began: its rest, the pause, a look, the gathering, and the second.
    expect(tookMs + pauseAfter(tookMs, false) + 250 + 500 + tookMs).toBeLessThan(10_000);
  }
  expect([50, 1_000, 2_500, 4_000, 20_000].map(tookMs => pauseAfter(tookMs, false))).toEqual([1_950, 6_250, 3_250, 4_000, 60_000]);
});

test('while much is read a refresh takes a fortieth of the time, making it anew a hundredth, and afterwards all is sorted once', async () => {
  const { world, start } = simulate({ tookMs: 500, until: 90_000 });
  world.isReading = true;
  for (let ms = 100; ms < 60_000; ms += 100) {
    world.at(ms, () => {
      world.isFresh = false;
    });
  }
  world.at(65_050, () => {
    world.isReading = false;
  });
  world.at(70_100, () => {
    world.isFresh = false;
  });
  await start();
  expect(world.done).toEqual([
    'refresh 750',
    'refresh 21250, no rebuild',
    'refresh 41750, no rebuild',
    'refresh 62250',
    'publish 65750',
    'refresh 70750',
  ]);
});

test('what is slow to make anew is made so every ten minutes while much is read', async () => {
  const { world, start } = simulate({ tookMs: 8_000, until: 1_000_000 });
  world.isReading = true;
  world.isFresh = false;
  for (let ms = 1_000; ms < 1_000_000; ms += 1_000) {
    world.at(ms, () => {
      world.isFresh = false;
    });
  }
  await start();
  expect(world.done).toEqual(['refresh 750', 'refresh 321250, no rebuild', 'refresh 641750', 'refresh 962250, no rebuild']);
});

test('a failure is told once, tried again every half minute, and told again when it is another', async () => {
  const { world, start } = simulate({ until: 130_000 });
  world.isFresh = false;
  world.failure = 'no room';
  world.at(60_000, () => {
    world.failure = 'no memory';
  });
  world.at(90_000, () => {
    world.failure = undefined;
  });
  await start();
  expect(world.done).toEqual(['refresh 750', 'refresh 31250', 'refresh 61750', 'refresh 92250']);
  expect(world.warnings).toEqual(['no room', 'no memory']);
});
