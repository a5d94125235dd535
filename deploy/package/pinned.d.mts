// Types of pinned.mjs, for its tests.
export interface Locked {
  version?: string
  dev?: boolean
  devOptional?: boolean
  resolved?: string
  integrity?: string
  engines?: { node?: string }
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/** package-lock.json, as far as it is read here. */
export interface Lock {
  packages: Record<string, Locked>
}

export function pinned(lock: Lock): Lock
export function tooNew(lock: Lock): string[]
