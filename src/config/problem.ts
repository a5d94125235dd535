// What is wrong with a file, where, and how it is said.
import { type Position, positionsIn } from './position.ts'

/** One fault of the file, found anywhere on the way; becomes a Problem once all are known. */
export interface Fault {
  /** Characters before it in the file's text. */
  readonly offset: number
  /** `routes[0].upstream`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
}

export interface Problem extends Position {
  /** As it was named on the command line. */
  readonly file: string
  readonly path: string
  readonly message: string
}

/** `FILE:LINE:COL  path.to.key  what is wrong and what would be right` (CONTRACT §1). */
export function formatProblem({ file, line, column, path, message }: Problem): string {
  return `${file}:${line}:${column}  ${path || '(file)'}  ${message}`
}

/** In file order. The same sentence at the same place is one fault, by however many aliases it was reached. */
export function problemsOf(file: string, text: string, faults: readonly Fault[]): Problem[] {
  const positionOf = positionsIn(text)
  const seen = new Set<string>()
  return faults
    .map(({ offset, path, message }) => ({ file, ...positionOf(offset), path, message }))
    .filter(({ line, column, message }) => {
      const key = `${line}:${column} ${message}`
      return seen.has(key) ? false : seen.add(key)
    })
    .sort((a, b) => a.line - b.line || a.column - b.column)
}

/** `routes`, `[0]`, `.upstream`, `["an odd name"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}
