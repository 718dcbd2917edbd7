import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { rows } from '../support/warehouse.ts';

// What does not fit its column is kept, or told of, elsewhere.

export const rejected = (warehouse: Warehouse) =>
  rows(warehouse, 'SELECT user_id, collection, id, reason, document FROM sync.rejected ORDER BY id');

export const rejectedTexts = async (warehouse: Warehouse) =>
  (await warehouse.read('SELECT document::VARCHAR FROM sync.rejected ORDER BY 1')).map(([text]) => text);

export const drift = (warehouse: Warehouse) =>
  warehouse.read('SELECT collection, path, kind, documents FROM sync.drift ORDER BY collection, path, kind');

/** The ids of documents, each with what its `extra` holds. */
export const extraOf = async (warehouse: Warehouse, name: string) =>
  (await warehouse.read(`SELECT id, extra::VARCHAR FROM ${name} ORDER BY id`)).map(row => [row[0], JSON.parse(String(row[1]))]);
