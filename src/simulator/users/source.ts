import { addDays } from '../../../schema/instant.ts';
import { findIdOf, orderOfId, type Resource, type WireDocument } from '../../../schema/resource.ts';
import type { DocumentSource } from '../../service/source.ts';
import type { HeartRateRow, People } from './people.ts';

/** Generated people as what the service serves. */
export function peopleSource(people: People): DocumentSource {
  return {
    async list(userId, resource, { from, to, after, limit }) {
      if (!resource.dated) return people.undated(userId, resource.name).filter(isAfterId(resource, after?.id)).slice(0, limit);
      const found: WireDocument[] = [];
      const last = to !== undefined && to < people.to ? to : people.to;
      let day = people.from;
      for (const begin of [from, after?.day]) if (begin !== undefined && begin > day) day = begin;
      for (; day <= last && found.length < limit; day = addDays(day, 1)) {
        const documents = people.documents(userId, resource.name, day);
        found.push(...(day === after?.day ? documents.filter(isAfterId(resource, after.id)) : documents));
      }
      return found.slice(0, limit);
    },
    async find(userId, resource, id) {
      const isIt = (document: WireDocument) => document.id === id;
      if (!resource.dated) return people.undated(userId, resource.name).find(isIt);
      const day = people.findDay(userId, resource.name, id);
      return day === undefined ? undefined : people.documents(userId, resource.name, day).find(isIt);
    },
    async heartRate(userId, { from, to, after, limit }) {
      // No two rows of a person share a moment, so one more than asked for is enough to leave the last one out.
      const rows = people.heartRate(userId, Math.max(from, after?.micros ?? from), to, limit + 1);
      return rows.filter(row => !after || isLater(row, after)).slice(0, limit);
    },
    async personalInfo(userId) {
      return people.personalInfo(userId);
    },
  };
}

const isAfterId = (resource: Resource, id: string | undefined) => (document: WireDocument) =>
  id === undefined || orderOfId(resource, findIdOf(resource, document) ?? '') > orderOfId(resource, id);

const isLater = (row: HeartRateRow, after: { micros: number; source: string }) => {
  const micros = row.timestamp_unix * 1000;
  return micros > after.micros || (micros === after.micros && row.source > after.source);
};
