import { formatDay } from '../../schema/instant.ts';
import type { Resource, WireDocument } from '../../schema/resource.ts';
import type { Operation } from '../../schema/webhook.ts';
import type { People } from './users/people.ts';

/** One document that is there, is not there, or reads otherwise than before. */
export interface Difference {
  operation: Operation;
  dataType: string;
  id: string;
}

/** What events tell that changed for somebody between two states, in some days and resources. Undated resources are compared whole. */
export function findDifferences(
  before: People,
  after: People,
  userId: string,
  { days, resources }: { days: Iterable<number>; resources: readonly Resource[] },
): Difference[] {
  const announced = resources.flatMap(({ name, dated, dataType }) => (dataType === undefined ? [] : [{ name, dated, dataType }]));
  const found: Difference[] = [];
  for (const number of days) {
    const day = formatDay(number);
    for (const { name, dated, dataType } of announced) {
      if (dated) found.push(...compare(dataType, before.documents(userId, name, day), after.documents(userId, name, day)));
    }
  }
  for (const { name, dated, dataType } of announced) {
    if (!dated) found.push(...compare(dataType, before.undated(userId, name), after.undated(userId, name)));
  }
  return found;
}

function compare(dataType: string, before: readonly WireDocument[], after: readonly WireDocument[]): Difference[] {
  const texts = new Map(before.map(document => [String(document.id), JSON.stringify(document)]));
  const found: Difference[] = [];
  for (const document of after) {
    const id = String(document.id);
    const text = texts.get(id);
    texts.delete(id);
    if (text === undefined) found.push({ operation: 'create', dataType, id });
    else if (text !== JSON.stringify(document)) found.push({ operation: 'update', dataType, id });
  }
  for (const id of texts.keys()) found.push({ operation: 'delete', dataType, id });
  return found;
}
