import { RingneckError, TryLaterError } from '../../base/errors.ts';
import { version as packageVersion } from '../../base/version.ts';
import { findAddress } from './address.ts';
import { call, type Patience } from './call.ts';
import type { Commands, EventOf, InputOf, ResultOf } from './command.ts';
import { findWarehouseIdentity } from './identity.ts';
import { send, textOf } from './request.ts';

/** The way to the process that owns a data folder. */
export interface ControlClient<Own extends Commands> {
  readonly pid: number;
  /** Whether it ends with the command that it has begun with. */
  readonly isPassing: boolean;
  /**
   * Has the owner do it. An abort stops the command there and its result is still waited for, some seconds long; without one it is exit code 130.
   * What the command throws is thrown here with its message and exit code.
   */
  call<Name extends keyof Own & string>(
    name: Name,
    input: InputOf<Own[Name]>,
    options?: { onEvent?: (event: EventOf<Own[Name]>) => void; signal?: AbortSignal | undefined },
  ): Promise<ResultOf<Own[Name]>>;
}

// The owner's heartbeat comes every 2 s.
const usualPatience: Patience = { firstWordMs: 10_000, silenceMs: 30_000, stopMs: 10_000 };

const nobodyThere = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ENOTSOCK', 'ECONNRESET', 'EPIPE'];

/**
 * The control socket of whoever owns the folder; undefined when nobody answers there. An owner that is there and does not answer, or is of another version,
 * is a TryLaterError; one that owns another warehouse is refused. (Version and patience are for tests.)
 */
export async function connectControl<Own extends Commands>(
  folder: string,
  { version = packageVersion, patience = usualPatience }: { version?: string; patience?: Patience } = {},
): Promise<ControlClient<Own> | undefined> {
  const address = findAddress(folder);
  if (address === undefined) return undefined;
  const find = () => findOwner(folder, address, patience.firstWordMs);
  let owner = await find();
  if (owner === undefined) return undefined;
  if (owner.version !== version) {
    throw new TryLaterError(
      `${folder} is owned by ringneck ${owner.version} (PID ${owner.pid}), and this is ringneck ${version}: restart \`ringneck up\`.`,
    );
  }
  if (owner.isOlder) {
    throw new TryLaterError(
      `The process that answers at ${address} (PID ${owner.pid}) is an older ringneck, which does not tell its warehouse: restart \`ringneck up\`.`,
    );
  }
  // An erasing may have put another file in its place between the two looks at it.
  if (!owner.ours) owner = (await find()) ?? owner;
  if (!owner.ours) {
    throw new RingneckError(
      `The process that answers at ${address} (PID ${owner.pid}) owns another warehouse than ${folder}: stop it, or remove that socket.`,
    );
  }
  const { pid, isPassing } = owner;
  return {
    pid,
    isPassing,
    async call(name, input, options = {}) {
      const onEvent = options.onEvent as ((event: unknown) => void) | undefined;
      const result = await call({ folder, address, pid }, { name, input, onEvent, signal: options.signal, patience });
      // Both sides are of one version, so the result has the type that the command is declared with.
      return result as ResultOf<Own[typeof name]>;
    },
  };
}

interface Found {
  version: string;
  pid: number;
  isPassing: boolean;
  /** Whether it does not tell its warehouse, which all of this version do. */
  isOlder: boolean;
  /** Whether what it owns is the warehouse that lies in our folder. */
  ours: boolean;
}

async function findOwner(folder: string, address: string, patienceMs: number): Promise<Found | undefined> {
  try {
    const response = await send(address, { method: 'GET', path: '/version', signal: AbortSignal.timeout(patienceMs) });
    const { version, pid, warehouse, isPassing }: { version: string; pid: number; warehouse?: string | null; isPassing?: boolean } =
      JSON.parse(await textOf(response));
    return {
      version,
      pid,
      isPassing: isPassing === true,
      isOlder: warehouse === undefined,
      ours: warehouse === (findWarehouseIdentity(folder) ?? null),
    };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (nobodyThere.includes(code)) return undefined;
    if (code === 'EACCES') throw new RingneckError(`${folder} is owned by a process of another user: its control.sock refuses us.`);
    throw new TryLaterError(
      `Another process owns ${folder} and does not answer at its control.sock. Try again later, or end that process.`,
      {
        cause: error,
      },
    );
  }
}
