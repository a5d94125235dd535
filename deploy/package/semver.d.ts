// Types for the functions of `semver` that are used in this folder. The package `semver` contains no types.
declare module 'semver' {
  export function minVersion(range: string): { toString(): string } | null
  export function satisfies(version: string, range: string): boolean
}
