import { join } from 'node:path';

export const WAREHOUSE = 'warehouse.duckdb';

/** The warehouse of a data folder. */
export const warehouseIn = (data: string): string => join(data, WAREHOUSE);
