const BITS_OF_A_KEY = 16;
const PROBES = 8;
/** 32 MB: 16 million keys. */
const MOST_BITS = 2 ** 28;
const FEWEST_BITS = 2 ** 20;
export const MOST_KEYS = MOST_BITS / BITS_OF_A_KEY;

/** A set of texts that keeps none of them: it lacks none that was added, and takes one in a thousand others for one of them at most. */
export class BloomFilter {
  readonly #bytes: Uint8Array;
  readonly #mask: number;
  #added = 0;

  /** @param keys how many it is to hold; more than `MOST_KEYS` do not fit */
  constructor(keys: number) {
    const bits = Math.min(MOST_BITS, 2 ** Math.ceil(Math.log2(Math.max(FEWEST_BITS, keys * BITS_OF_A_KEY))));
    this.#bytes = new Uint8Array(bits / 8);
    this.#mask = bits - 1;
  }

  /** Whether it says too often of what it lacks that it has it. */
  get isFull(): boolean {
    return this.#added > (this.#mask + 1) / BITS_OF_A_KEY;
  }

  add(key: string): void {
    this.#added++;
    const [first, step] = hashesOf(key);
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = (first + Math.imul(probe, step)) & this.#mask;
      this.#bytes[bit >>> 3]! |= 1 << (bit & 7);
    }
  }

  mayHave(key: string): boolean {
    const [first, step] = hashesOf(key);
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = (first + Math.imul(probe, step)) & this.#mask;
      if (!(this.#bytes[bit >>> 3]! & (1 << (bit & 7)))) return false;
    }
    return true;
  }
}

/** Two hashes of 32 bits, multiplied and mixed as MurmurHash3 does; the second is odd, so that the probes do not meet. */
function hashesOf(text: string): [number, number] {
  let first = 0x9747b28c;
  let second = 0x3c6ef372;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    first = Math.imul(first ^ unit, 0x9e3779b1);
    second = Math.imul(second ^ unit, 0x5f356495);
  }
  return [mix(first), mix(second ^ (first >>> 15)) | 1];
}

function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
