import { randomBytes } from 'node:crypto';
import { orderOfId } from '../../schema/resource.ts';
import { personalInfo } from '../../schema/resources/personal-info.ts';
import { createService } from '../service/service.ts';
import type { DocumentSource } from '../service/source.ts';
import { quoteName, quoteText } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { App } from './app.ts';

/** A warehouse as a source of documents: what came from a service, served again by the same interface. */
export function warehouseSource(warehouse: Warehouse): DocumentSource {
  return {
    async list(userId, resource, { from, to, after, limit }) {
      const day = quoteName(resource.dayField);
      const id = resource.identifiedBy === undefined ? 'id' : `rtrim(id, 'Z')`;
      const order = resource.dated ? `${day}, ${id}` : id;
      const last = after && quoteText(orderOfId(resource, after.id));
      const parts = [`user_id = ${quoteText(userId)}`];
      if (resource.dated && from) parts.push(`${day} >= ${quoteText(from)}`);
      if (resource.dated && to) parts.push(`${day} <= ${quoteText(to)}`);
      if (after && resource.dated)
        parts.push(`(${day} > ${quoteText(after.day)} OR (${day} = ${quoteText(after.day)} AND ${id} > ${last}))`);
      else if (after) parts.push(`${id} > ${last}`);
      const rows = await warehouse.readDocuments(resource.name, `${parts.join(' AND ')} ORDER BY ${order} LIMIT ${limit}`);
      return rows.map(({ document }) => document);
    },
    async find(userId, resource, id) {
      // No statement can hold a NUL, and no document has one in its id.
      if (id.includes('\0')) return undefined;
      const [row] = await warehouse.readDocuments(resource.name, `user_id = ${quoteText(userId)} AND id = ${quoteText(id)}`);
      return row?.document;
    },
    heartRate: (userId, query) => warehouse.readHeartRate(userId, query),
    // Its reader knows the person by the name of the account, whatever else may be kept.
    async personalInfo(userId) {
      const [row] = await warehouse.readDocuments(personalInfo.name, `user_id = ${quoteText(userId)} ORDER BY sk DESC LIMIT 1`);
      return { ...row?.document, id: userId };
    },
  };
}

/** Serves the warehouse in the process that owns it, with tokens of its own (`account mirror-token`). */
export async function serveMirror(app: App, address: { host: string; port: number }): Promise<{ url: string; close(): Promise<void> }> {
  const { warehouse, mirrorTokens, log, now } = app;
  const service = createService({
    resources: warehouse.resources,
    source: warehouseSource(warehouse),
    authenticate: token => {
      const userId = mirrorTokens.findAccount(token);
      return userId === undefined ? undefined : { userId, state: 'active' };
    },
    // It protects nobody: its readers are on its owner's side.
    settings: { rateLimit: 'off', appRateLimit: 'off' },
    clock: () => new Date(now()),
    // A next_token of the mirror need not outlive it: its reader starts the collection again.
    tokenKey: randomBytes(32),
    log,
  });
  const url = await service.listen(address);
  return { url, close: () => service.close() };
}
