import { existsSync, readFileSync } from 'node:fs';
import { writeDataDictionary } from '../app/catalogue/data-dictionary.ts';
import { RingneckError } from '../base/errors.ts';

let dictionary: Promise<string> | undefined;

/** As this version makes it, whatever file there is. */
export function readDictionary(): Promise<string> {
  dictionary ??= writeDataDictionary();
  return dictionary;
}

/** @throws RingneckError where the package has been taken apart */
export async function readCookbook(): Promise<string> {
  // Two folders above src/mcp/, three above dist/src/mcp/, further above where tests have compiled it.
  const places = [2, 3, 5].map(up => new URL(`${'../'.repeat(up)}docs/cookbook.md`, import.meta.url));
  const place = places.find(url => existsSync(url));
  if (!place) throw new RingneckError('docs/cookbook.md is not where the package has it: install Ringneck again');
  return readFileSync(place, 'utf8');
}
