import { expect, onTestFinished, test } from 'vitest';
import { type Script, startFaultService } from './fault-service.ts';

async function start(scripts: Record<string, Script> = {}, upstream?: string) {
  const service = await startFaultService(scripts, upstream === undefined ? {} : { upstream });
  onTestFinished(() => service.close());
  return service;
}

test('what is not scripted comes from upstream, and the n-th request can be made to fail', async () => {
  const real = await start({ '/v2/*': ({ path, query, token }) => ({ json: { path, x: query.get('x'), token } }) });
  const service = await start({ '/scripted': { status: 418 } }, real.url);
  const ask = async (path: string) => (await fetch(service.url + path, { headers: { authorization: 'Bearer t' } })).status;
  expect(await (await fetch(`${service.url}/v2/sleep?x=1%2B`, { headers: { authorization: 'Bearer t' } })).json()).toEqual({
    path: '/v2/sleep',
    x: '1+',
    token: 't',
  });
  expect(await ask('/scripted')).toBe(418);
  service.failNth(2, { status: 500 });
  expect([await ask('/v2/a'), await ask('/v2/a'), await ask('/v2/a'), await ask('/elsewhere')]).toEqual([200, 500, 200, 404]);
  expect(service.asked.map(({ path }) => path)).toEqual(['/v2/sleep', '/scripted', '/v2/a', '/v2/a', '/v2/a', '/elsewhere']);
  expect(real.asked).toHaveLength(4);
});
