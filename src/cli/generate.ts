import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { resources } from '../../schema/index.ts';
import { writeDataDictionary } from '../app/catalogue/data-dictionary.ts';
import { fillPage, PAGE_PARTS } from '../app/catalogue/page-parts.ts';
import { mapAll } from '../warehouse/mapping.ts';
import { warehouseScript } from '../warehouse/tables.ts';
import { note } from './terminal/note.ts';

/** What derives from the declarations and is committed: run by `npm run generate`; with `--check` it only compares. */
const generated: Record<string, () => string | Promise<string>> = {
  'schema/warehouse.sql': () => warehouseScript(mapAll(resources)),
  'docs/data-dictionary.md': writeDataDictionary,
  ...Object.fromEntries(
    Object.entries(PAGE_PARTS).map(([page, parts]) => [page, () => fillPage(readFileSync(resolve(page), 'utf8'), parts)]),
  ),
};

const check = process.argv.includes('--check');
for (const [name, make] of Object.entries(generated)) {
  const path = resolve(name);
  const content = await make();
  if (!check) writeFileSync(path, content);
  else if (!existsSync(path) || readFileSync(path, 'utf8') !== content) {
    note(`${name} is not what the declarations in schema/ give: run \`npm run generate\` and commit it`);
    process.exitCode = 1;
  }
}
