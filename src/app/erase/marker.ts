import { z } from 'zod';
import { removeCommonFile, writeCommonFile } from '../../base/common-files.ts';
import { RingneckError } from '../../base/errors.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { markerPath } from './is-erasing.ts';

/** What was begun and is not finished. Whoever opens the folder next finishes it. */
const markerFile = z.strictObject({
  format: z.literal(1),
  name: z.string(),
  /** Null until they are known: they are not to be found any more once the rows have gone. */
  serviceUserIds: z.array(z.string()).nullable(),
  /** Other accounts of the same person, known with the ids. */
  samePerson: z.array(z.string()).default([]),
  /** Whether what the account is read with is known to be of another person, known with the ids. */
  isOfAnother: z.boolean().default(false),
  /** What went already, by table. */
  removed: z.record(z.string(), z.number()).default({}),
  queue: z.enum(['redis', 'embedded']),
});
export type Marker = z.infer<typeof markerFile>;

export function readMarker(folder: string): Marker {
  const path = markerPath(folder);
  const marker = openJsonFile(path, markerFile).read();
  if (marker) return marker;
  throw new RingneckError(`${path} is gone: another process has finished the erasing`);
}

export function writeMarker(folder: string, marker: Marker): void {
  writeCommonFile(folder, 'erasing.json', `${JSON.stringify(marker)}\n`);
}

export function removeMarker(folder: string): void {
  removeCommonFile(folder, 'erasing.json');
}
