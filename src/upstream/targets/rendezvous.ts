// Rendezvous hashing: a user keeps a choice as long as it stands, and one more takes only its own share of users.

/** A 32-bit hash of text (FNV-1a), the same in every process and replica. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return mix(hash)
}

/** Uniform in (0, 1), from two hashes. */
function uniform(one: number, other: number): number {
  const high = mix(one ^ other)
  const low = mix(high ^ Math.imul(other, 0x9e3779b1))
  return ((high >>> 0) * 0x200000 + (low >>> 11) + 0.5) / 0x20000000000000
}

/** MurmurHash3's finalizer: every bit of the input changes half of the bits of the result. */
function mix(hash: number): number {
  let mixed = hash ^ (hash >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/** The higher, the better; over all keys each wins in proportion to its weight. @param weight positive */
export function score(key: number, name: number, weight: number): number {
  return weight / -Math.log(uniform(key, name))
}
