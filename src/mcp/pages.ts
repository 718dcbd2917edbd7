import { readCookbookPage } from '../app/catalogue/cookbook.ts';
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
  const page = readCookbookPage();
  if (page === undefined) throw new RingneckError('docs/cookbook.md is not where the package has it: install Ringneck again');
  return page;
}
