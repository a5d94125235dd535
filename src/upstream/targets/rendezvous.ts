// Implements rendezvous hashing. A user keeps the same choice as long as this choice exists. When a choice is added, it
// takes over only its own share of users.

/** Returns a 32-bit hash of the text (FNV-1a). It is the same in every process and replica. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return mix(hash)
}

/** Returns a number between 0 and 1, uniformly distributed, from two hashes. */
function uniform(one: number, other: number): number {
  const high = mix(one ^ other)
  const low = mix(high ^ Math.imul(other, 0x9e3779b1))
  return ((high >>> 0) * 0x200000 + (low >>> 11) + 0.5) / 0x20000000000000
}

/** The finalizer of MurmurHash3. If one input bit changes, about half of the output bits change. */
function mix(hash: number): number {
  let mixed = hash ^ (hash >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/**
 * Returns the score of a name for a key. The name with the highest score is chosen. Over all keys, each name is chosen
 * in proportion to its weight, which must be positive.
 */
export function score(key: number, name: number, weight: number): number {
  return weight / -Math.log(uniform(key, name))
}
