// What is wrong with a file, where, and how it is said.
import { type Position, positionsIn } from './position.ts'

/** One fault of the file, found anywhere on the way; becomes a Problem once all are known. */
export interface Diagnostic {
  /** Characters before it in the file's text. */
  readonly offset: number
  /** `routes[0].upstream`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
}

export interface LocatedDiagnostic extends Position {
  /** As it was named on the command line. */
  readonly file: string
  readonly path: string
  readonly message: string
}

/** What keeps a file from being used: the first of its problems, in file order. */
export interface Problems {
  readonly problems: readonly LocatedDiagnostic[]
  /** How many there are besides those. */
  readonly more: number
  /** What would not keep it from being used. */
  readonly warnings?: Problems
}

/** Of one file that are told: whoever mends them all sees the others then. */
export const mostProblems = 100

/** A line each, and one for those that are not told; warnings come last. */
export function linesOf({ problems, more, warnings }: Problems): string[] {
  const rest = more === 0 ? [] : [`… and ${more} more`]
  return [
    ...problems.map(formatDiagnostic),
    ...rest,
    ...(warnings === undefined ? [] : warningLinesOf(warnings)),
  ]
}

/** `FILE:LINE:COL  path.to.key  warning: …` */
export function warningLinesOf({ problems, more }: Problems): string[] {
  const lines = problems.map(problem =>
    formatDiagnostic({ ...problem, message: `warning: ${problem.message}` }),
  )
  return more === 0 ? lines : [...lines, `… and ${more} more warnings`]
}

/** Writes them into the log, a line each. */
export function logWarnings(
  { problems, more }: Problems,
  logger: { warn(fields: object, text: string): void },
): void {
  for (const { path, line, message } of problems) logger.warn({ key: path, line }, `${path}: ${message}`)
  if (more > 0) logger.warn({}, `${more} more warnings: peage check prints them`)
}

/** `FILE:LINE:COL  path.to.key  what is wrong and what would be right` (CONTRACT §1). */
export function formatDiagnostic({ file, line, column, path, message }: LocatedDiagnostic): string {
  return `${file}:${line}:${column}  ${path || '(file)'}  ${message}`
}

/** In file order. The same sentence at the same place is one fault, by however many aliases it was reached. */
export function locateDiagnostics(file: string, text: string, diagnostics: readonly Diagnostic[]): Problems {
  const positionOf = positionsIn(text)
  const placed = diagnostics
    .map(fault => ({ fault, at: positionOf(fault.offset) }))
    .sort((a, b) => a.at.line - b.at.line || a.at.column - b.at.column)
  const problems: LocatedDiagnostic[] = []
  let more = 0
  let last: Position | undefined
  let saidThere = new Set<string>()
  for (const { fault, at } of placed) {
    const { path, message } = fault
    if (last?.line !== at.line || last.column !== at.column) saidThere = new Set()
    last = at
    if (saidThere.has(message)) continue
    saidThere.add(message)
    if (problems.length < mostProblems) problems.push({ file, ...at, path, message })
    else more += 1
  }
  return { problems, more }
}

/** `routes`, `[0]`, `.upstream`, `["an odd name"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}
