// `ringneck up` of one machine with a lease that lasts for moments: `node standby-up.mjs <compiled folder> <milliseconds>`, settings as ever.
import { pathToFileURL } from 'node:url';

const [compiled, lastsMs] = process.argv.slice(2);
const load = path => import(pathToFileURL(`${compiled}/src/${path}.js`).href);
const [{ runUp }, { readSettings }, { createLog }, { interruptible }] = await Promise.all(
  ['app/up', 'base/config', 'base/log', 'base/interrupt'].map(load),
);
const leaseTimes = { lastsMs: Number(lastsMs), renewMs: lastsMs / 5, lookMs: lastsMs / 10 };
const log = createLog({ level: 'info', pretty: false });
await interruptible(signal => runUp({ settings: readSettings(process.env), log, leaseTimes }, signal)).catch(error => {
  log.error(error.message);
  process.exit(error.exitCode ?? 1);
});
