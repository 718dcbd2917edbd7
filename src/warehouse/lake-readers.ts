import type { LakePlace, MadeLake } from './lake.ts';

/** What somebody types who may read the catalogue and the files of a lake. */
export function tellReaders({ address, s3 }: LakePlace, { reader, readerPassword }: MadeLake): string {
  const { host, port, catalogue, data, user } = address;
  if (reader === null)
    return `Nobody else can read it yet: CREATE ROLE ${user}_reader LOGIN PASSWORD '…' in Postgres, then ringneck lake init again`;
  const isInBucket = data.startsWith('s3://');
  const place = [...(host === undefined ? [] : [`HOST '${host}'`]), ...(port === undefined ? [] : [`PORT ${port}`])];
  const url = s3.endpoint === undefined ? undefined : new URL(s3.endpoint);
  const endpoint = url ? [`ENDPOINT '${url.host}'`, `URL_STYLE 'path'`, `USE_SSL ${url.protocol === 'https:'}`] : [];
  const secret = (name: string, ...options: string[]) => `  CREATE SECRET ${name} (${options.join(', ')});`;
  return [
    '',
    `Readers type, in DuckDB${isInBucket ? ', with a key that may only read the bucket' : ', where they may read the folder'}:`,
    `  INSTALL ducklake; INSTALL postgres;${isInBucket ? ' INSTALL httpfs;' : ''}`,
    secret('catalogue', 'TYPE postgres', ...place, `DATABASE '${catalogue}'`, `USER '${reader}'`, `PASSWORD '${readerPassword ?? '…'}'`),
    ...(isInBucket
      ? [secret('bucket', 'TYPE s3', `KEY_ID '…'`, `SECRET '…'`, `REGION '${s3.region}'`, ...endpoint, `SCOPE '${data}'`)]
      : []),
    secret(
      'lake',
      'TYPE ducklake',
      `METADATA_PATH ''`,
      `DATA_PATH '${data}'`,
      `METADATA_PARAMETERS MAP {'TYPE': 'postgres', 'SECRET': 'catalogue'}`,
    ),
    `  ATTACH 'ducklake:lake' AS lake (READ_ONLY); USE lake;`,
    ...(readerPassword === null ? [] : [`The password of ${reader} is shown this once.`]),
  ].join('\n');
}
