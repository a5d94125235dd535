// The part of `semver` that is used here; the package has no types of its own.
declare module 'semver' {
  export function minVersion(range: string): { toString(): string } | null
  export function satisfies(version: string, range: string): boolean
}
