import type { WireDocument } from '../../../../schema/resource.ts';
import type { Random } from '../random.ts';

/** Now and then an optional field is null, or not there at all, as in what live services send. */
export function omitSome(random: Random, document: WireDocument, keys: readonly string[], probability: number): WireDocument {
  for (const key of keys) {
    const draw = random.next();
    if (draw < probability / 2) document[key] = null;
    else if (draw < probability) delete document[key];
  }
  return document;
}
