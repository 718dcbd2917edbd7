import { deriveKeysQuickly } from './quick-keys.ts';

// For each file of tests that start no process: nobody else opens what they seal.
deriveKeysQuickly();
