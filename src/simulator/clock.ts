/** The sandbox's own time: it runs at a speed against real time, and can be moved forward. Milliseconds since the Unix epoch. */
export interface Clock {
  now(): number;
  /** 0 stands still, 1 is real time. */
  readonly speed: number;
  setSpeed(speed: number): void;
  advance(ms: number): void;
  /** How long it really takes until a moment; infinite when the clock stands still before it. */
  realMsUntil(moment: number): number;
}

/** A clock that starts at a moment. While a real clock that was set back has not come to where it was, it stands still. */
export function createClock({ at, speed, realNow }: { at: number; speed: number; realNow: () => number }): Clock {
  let base = { at, real: realNow(), speed };
  let highest = at;
  function now(): number {
    highest = Math.max(highest, base.at + (realNow() - base.real) * base.speed);
    return highest;
  }
  return {
    now,
    get speed() {
      return base.speed;
    },
    setSpeed(next) {
      base = { at: now(), real: realNow(), speed: next };
    },
    advance(ms) {
      base = { at: now() + ms, real: realNow(), speed: base.speed };
    },
    realMsUntil: moment => (moment <= now() ? 0 : base.real + (moment - base.at) / base.speed - realNow()),
  };
}
