import { join } from 'node:path';

export const WAREHOUSE = 'warehouse.duckdb';

/** The warehouse of a data folder. */
export const warehouseIn = (data: string): string => join(data, WAREHOUSE);

/** A block of a warehouse's file as it was before it was mended lies beside it, under a name that begins so. */
export const tornBlocksOf = (path: string): string => `${path}.torn-block-`;

/** Copies of a warehouse's file as it was before an upgrade lie beside it, under names that begin so. */
export const upgradeCopiesOf = (path: string): string => `${path}.before-upgrade-`;
