// What dockerfile.mjs gives, for the tests.
export interface Instruction {
  readonly name: string
  /** What stands behind its name and flags. */
  readonly words: string
  readonly flags: Readonly<Record<string, string>>
  readonly line: number
}

export interface Stage {
  /** As later stages call it; its number where it has no name. */
  readonly name: string
  /** The image that it starts from. */
  readonly from: string
  readonly instructions: readonly Instruction[]
}

export function readDockerfile(text: string): Stage[]
export function execForm(words: string): string[]
