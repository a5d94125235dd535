// Checks whether the parameters of an Argon2 hash are within the limits, and whether it is as strong as a new hash.

/** The parameters of new hashes, which are OWASP's minimum for Argon2id: 19 MiB, two passes, one lane. */
export const newHashCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/**
 * The maximum parameters of a stored hash. Another program may have computed the hash. Without these limits, one login
 * could use all memory.
 */
const maxMemoryKiB = 256 * 1024
const maxLanes = 16
/** The maximum product of memory and passes. At this limit, a password check takes about 2 s on one core. */
const maxWorkKiB = 1024 * 1024

interface Argon2Parameters {
  readonly memoryKiB: number
  readonly passes: number
  readonly lanes: number
}

export function isWithinArgon2Limits({ memoryKiB, passes, lanes }: Argon2Parameters): boolean {
  return memoryKiB <= maxMemoryKiB && lanes <= maxLanes && memoryKiB * passes <= maxWorkKiB
}

/** Returns whether a stored hash is an Argon2 hash with parameters within the limits. */
export function isComputableArgon2(hash: string): boolean {
  const parameters = stored.exec(hash)?.slice(3).map(Number)
  if (parameters === undefined) return false
  const [memoryKiB = 0, passes = 0, lanes = 0] = parameters
  return isWithinArgon2Limits({ memoryKiB, passes, lanes })
}

/**
 * Returns whether a stored hash is Argon2id of version 19, and costs at least as much work as a new hash. The work is
 * the memory multiplied by the passes.
 */
export function isStrongArgon2(hash: string): boolean {
  const [, type, version, memoryKiB, passes] = stored.exec(hash) ?? []
  const work = Number(memoryKiB) * Number(passes)
  return type === 'id' && version === '19' && work >= newHashCost.memoryCost * newHashCost.timeCost
}

const stored = /^\$argon2(id|i|d)\$v=(16|19)\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/
