export interface Room {
  readonly name: string
  readonly duty: string
  /** Further patterns of files that it may not import. */
  readonly forbids?: readonly string[]
}

export const floors: readonly (readonly Room[])[]
