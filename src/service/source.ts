import type { Resource, WireDocument } from '../../schema/resource.ts';

/** Where in a collection the last page ended; `day` is empty for undated resources. */
export interface DocumentPosition {
  day: string;
  id: string;
}

/** Where in the heart-rate series the last page ended; microseconds since the epoch, UTC. */
export interface HeartRatePosition {
  micros: number;
  source: string;
}

/** Where the documents that the service serves come from: generated people, or a warehouse. */
export interface DocumentSource {
  /**
   * Ascending by (day, id), undated resources by id, rows by their moment, starting strictly after `after`; at most `limit`.
   * `from` and `to` are inclusive days, undefined for undated resources.
   */
  list(
    userId: string,
    resource: Resource,
    query: { from?: string; to?: string; after?: DocumentPosition; limit: number },
  ): Promise<WireDocument[]>;
  find(userId: string, resource: Resource, id: string): Promise<WireDocument | undefined>;
  /** from <= timestamp < to, in microseconds since the epoch; ascending by (timestamp, source), starting strictly after `after`. */
  heartRate(userId: string, query: { from: number; to: number; after?: HeartRatePosition; limit: number }): Promise<WireDocument[]>;
  personalInfo(userId: string): Promise<WireDocument | undefined>;
}
