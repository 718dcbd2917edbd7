/** Where a lake is: its catalogue in Postgres, and the place of its files. No secret is in it. */
export interface LakeAddress {
  /** A host, or the folder of a socket; undefined: as Postgres' own tools find it. */
  host: string | undefined;
  port: number | undefined;
  user: string;
  catalogue: string;
  /** `s3://bucket/prefix/`, or a folder; ends in a slash. */
  data: string;
}

const ADDRESS =
  /^ducklake:postgres(?:ql)?:\/\/([A-Za-z0-9_.-]+)@(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]*)(?::(\d{1,5}))?\/([A-Za-z0-9_-]+)\?(.+)$/;

/** Reads `ducklake:postgres://user@host/catalogue?data=…`, where `&host=` may name the folder of a socket; undefined where it is not that. */
export function parseLakeAddress(given: string): LakeAddress | undefined {
  const [, user, named, port, catalogue, query = ''] = ADDRESS.exec(given) ?? [];
  const parameters = new URLSearchParams(query);
  const data = parameters.get('data');
  if (!user || !catalogue || !data || [...parameters.keys()].some(key => key !== 'data' && key !== 'host')) return undefined;
  if (!/^s3:\/\/[a-z0-9][a-z0-9.-]+(\/[^?*[\]]*)?$/.test(data) && !/^\/[^?*[\]]+$/.test(data)) return undefined;
  const host = parameters.get('host') ?? named?.replace(/^\[|\]$/g, '');
  return { host: host || undefined, port: port ? Number(port) : undefined, user, catalogue, data: `${data.replace(/\/+$/, '')}/` };
}

/** Otherwise its files lie in a folder. */
export const isInBucket = ({ data }: Pick<LakeAddress, 'data'>): boolean => data.startsWith('s3://');

/** As people are told of it. */
export const showCatalogue = ({ host, port, catalogue }: LakeAddress): string =>
  `${catalogue} at ${host ?? 'this machine'}${port === undefined ? '' : `:${port}`}`;
