import { Sandbox, type SandboxOptions } from '../../src/app/sandbox.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { findAddressRange } from '../../src/service/webhooks/callback-guard.ts';
import { createFaultSwitches } from '../../src/simulator/faults.ts';
import type { OpenSandbox } from './sandbox-process.ts';

/** All of `ringneck service` in this process, whose start takes a second less; callbacks may lie on this machine. */
export async function openSandboxHere(
  folder: string,
  options: Partial<SandboxOptions> = {},
  faults: Parameters<ReturnType<typeof createFaultSwitches>['set']>[0] = {},
): Promise<OpenSandbox & { close(): Promise<void> }> {
  const fault = createFaultSwitches();
  fault.set(faults);
  const sandbox = await Sandbox.prepare({
    settings: readSettings({ RINGNECK_DATA: folder }),
    log: silentLog,
    first: { people: 2, seed: 7, from: '2025-01-01' },
    options: {
      port: 0,
      host: '127.0.0.1',
      redirectUrl: [],
      tokenLife: 86_400,
      deliveryDelay: 30,
      timeScale: 1,
      allowCallback: [findAddressRange('127.0.0.0/8')!],
      controlPort: 0,
      fault,
      ...options,
    },
  });
  const { url, people, client, control } = await sandbox.open();
  const shown = (secret: string | null) => {
    if (secret === null) throw new Error('it was told before');
    return secret;
  };
  return {
    url,
    people: people.map(person => ({ ...person, token: shown(person.token) })),
    client: { id: client.id, secret: shown(client.secret) },
    control: { url: control.url, secret: shown(control.secret) },
    close: () => sandbox.close(),
  };
}
