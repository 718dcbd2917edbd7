import { resources } from '../../../schema/index.ts';
import { settingsTable } from '../../base/config.ts';
import { declareCatalogue, type Group } from '../../warehouse/readers/catalogue.ts';
import { INTERFACE_PARTS } from './interface-parts.ts';

/** Parts of hand-written pages that derive from declarations, by page and by the name in their markers. */
export const PAGE_PARTS: Readonly<Record<string, Readonly<Record<string, () => string | Promise<string>>>>> = {
  'docs/interface.md': INTERFACE_PARTS,
  'docs/settings.md': { settings: settingsTable },
  'docs/warehouse.md': { contents: listContents },
};

/** The page with its generated parts as they are to be. Throws when it lacks the markers of one. */
export async function fillPage(page: string, parts: (typeof PAGE_PARTS)[string]): Promise<string> {
  let filled = page;
  for (const [name, write] of Object.entries(parts)) {
    const [start, end] = [`<!-- generated: ${name} -->\n`, `<!-- end of generated: ${name} -->`];
    const [from, to] = [filled.indexOf(start), filled.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`the page has no markers ${start.trim()} and ${end}`);
    filled = `${filled.slice(0, from + start.length)}\n${(await write()).trim()}\n\n${filled.slice(to)}`;
  }
  return filled;
}

async function listContents(): Promise<string> {
  const { entries } = await declareCatalogue(resources);
  const list = (title: string, group: Group) => {
    const names = entries.filter(entry => entry.group === group).flatMap(({ name, calls }) => (calls.length ? calls : [name]));
    return `- **${title}**: ${names.map(name => `\`${name}\``).join(', ')}`;
  };
  return [
    list('Views', 'views'),
    list('Macros', 'macros'),
    list('Documents, one row each', 'documents'),
    list('Series, one row for each sample or object', 'series'),
    list('Study, one row for each participant', 'study'),
  ].join('\n');
}
