import crypto, { type BinaryLike } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, beforeAll } from 'vitest';

/** For the tests of a file in which the strength of keys is not the point: deriving one is slow on purpose, and would be most of their time. */
export function deriveKeysQuickly(): void {
  const { scryptSync } = crypto;
  const replaceBy = (derive: object) => {
    Object.assign(crypto, { scryptSync: derive });
    syncBuiltinESMExports();
  };
  beforeAll(() => replaceBy((text: BinaryLike, salt: BinaryLike, length: number) => scryptSync(text, salt, length, { N: 2 })));
  afterAll(() => replaceBy(scryptSync));
}
