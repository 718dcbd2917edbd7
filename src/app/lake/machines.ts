import { UsageError } from '../../base/errors.ts';
import type { Machine } from '../../machines/presence.ts';
import type { AppOptions } from '../app-options.ts';
import { openCatalogue } from './hold.ts';

/**
 * The machines on which `ringneck up` runs with the lake of the settings.
 * @throws UsageError where the warehouse is a file
 */
export async function findMachines({ settings }: Pick<AppOptions, 'settings'>): Promise<Machine[]> {
  if (!settings.warehouse) throw new UsageError('RINGNECK_WAREHOUSE names no lake: a warehouse’s file has one machine');
  const { listMachines } = await import('../../machines/presence.ts');
  const catalogue = await openCatalogue({ settings });
  try {
    return await listMachines(catalogue);
  } finally {
    await catalogue.close();
  }
}
