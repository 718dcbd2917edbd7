// `node --import <this>` with SHIFT_MS: the clock of a machine that is ahead, or behind.
const shift = Number(process.env.SHIFT_MS ?? 0);
const { now } = Date;
Date.now = () => now() + shift;
globalThis.Date = new Proxy(Date, {
  construct: (target, parameters, created) => Reflect.construct(target, parameters.length ? parameters : [Date.now()], created),
});
