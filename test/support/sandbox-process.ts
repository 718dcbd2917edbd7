import { startRingneck } from './ringneck.ts';

/** What `ringneck service --json` tells. */
export interface SandboxProcess {
  url: string;
  people: { name: string; user_id: string; token: string }[];
  client: { id: string; secret: string };
  sign_in: { authorize_url: string; token_url: string; revoke_url: string; redirect_urls: string[] };
  control: { url: string; secret: string };
}

/** What most tests need of it. */
export type OpenSandbox = Pick<SandboxProcess, 'url' | 'people' | 'client' | 'control'>;

/** A sandbox service in a process of its own, until the tests of the file have ended. */
export async function startSandboxProcess(folder: string, ...options: string[]): Promise<SandboxProcess> {
  const args = ['service', '--people', '2', '--from', '2025-01-01', '--to', '2025-01-31', '--port', '0', '--json', ...options];
  const service = startRingneck(args, { env: { RINGNECK_DATA: folder, RINGNECK_LOG_LEVEL: 'warn' } });
  return JSON.parse(await service.line()) as SandboxProcess;
}
