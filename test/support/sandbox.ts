import { randomBytes } from 'node:crypto';
import { resources } from '../../schema/index.ts';
import { createService } from '../../src/service/service.ts';
import type { ServiceSettings } from '../../src/service/settings.ts';
import type { DocumentSource } from '../../src/service/source.ts';
import type { TokenState } from '../../src/service/tokens.ts';
import { createPeople, type People, type PeopleOptions } from '../../src/simulator/users/people.ts';
import { peopleSource } from '../../src/simulator/users/source.ts';

export interface Sandbox {
  url: string;
  people: { name: string; userId: string; token: string }[];
  source: People;
  setState(token: string, state: TokenState): void;
  /** Another token of this person. */
  renew(userId: string): string;
  close(): Promise<void>;
}

/** The real service over generated people, on a port of its own in this process; without rate limits unless the settings name some. */
export async function startSandbox(
  options: Pick<PeopleOptions, 'count' | 'from' | 'to'> &
    Partial<PeopleOptions> & {
      settings?: Partial<ServiceSettings>;
      wrap?: (source: DocumentSource) => DocumentSource;
      now?: () => number;
    },
): Promise<Sandbox> {
  const { settings, wrap = source => source, now = Date.now, seed = 7, ...rest } = options;
  const people = createPeople({ seed, ...rest });
  const holders = new Map<string, { userId: string; state: TokenState }>();
  const renew = (userId: string) => {
    const token = `t-${randomBytes(12).toString('hex')}`;
    holders.set(token, { userId, state: 'active' });
    return token;
  };
  const list = people.persons.map(({ name, userId }) => ({ name, userId, token: renew(userId) }));
  const service = createService({
    resources,
    source: wrap(peopleSource(people)),
    authenticate: token => holders.get(token),
    tokenKey: randomBytes(32),
    clock: () => new Date(now()),
    settings: { closeTimeoutMs: 100, rateLimit: 'off', appRateLimit: 'off', ...settings },
  });
  const url = await service.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    people: list,
    source: people,
    setState: (token, state) => void Object.assign(holders.get(token)!, { state }),
    renew,
    close: () => service.close(),
  };
}
