// Types for the used part of `semver`, which has none.
declare module 'semver' {
  export function minVersion(range: string): { toString(): string } | null
  export function satisfies(version: string, range: string): boolean
}
