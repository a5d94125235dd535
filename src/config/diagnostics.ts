// Locates, sorts and formats the errors in a configuration file.

/** An error in the file, found at any stage of loading. `locateDiagnostics` turns it into a LocatedDiagnostic. */
export interface Diagnostic {
  /** Offset in characters from the start of the file. */
  readonly offset: number
  /** The path of the key, such as `routes[0].upstream`. Empty if the error concerns the whole file. */
  readonly path: string
  readonly message: string
}

export interface LocatedDiagnostic extends Position {
  readonly file: string
  readonly path: string
  readonly message: string
}

/** A problem without secrets, so that operators may see it. */
export interface ListedProblem extends Position {
  readonly path: string
  readonly text: string
}

/** The diagnostics of a file in file order, at most `mostProblems` of them. */
export interface Problems {
  readonly problems: readonly LocatedDiagnostic[]
  /** The number of diagnostics that exceed the maximum and are left out. */
  readonly more: number
  readonly warnings?: Problems
  /** `problems` without secrets, for operators. Set only when the file is loaded to serve requests. */
  readonly listed?: readonly ListedProblem[]
}

/** Maximum number of problems reported per file. The remaining problems are reported after these are fixed. */
export const mostProblems = 100

export function linesOf({ problems, more, warnings }: Problems): string[] {
  const rest = more === 0 ? [] : [`… and ${more} more`]
  return [
    ...problems.map(formatDiagnostic),
    ...rest,
    ...(warnings === undefined ? [] : warningLinesOf(warnings)),
  ]
}

export function warningLinesOf({ problems, more }: Problems): string[] {
  const lines = problems.map(problem =>
    formatDiagnostic({ ...problem, message: `warning: ${problem.message}` }),
  )
  return more === 0 ? lines : [...lines, `… and ${more} more warnings`]
}

export function logWarnings(
  { problems, more }: Problems,
  logger: { warn(fields: object, text: string): void },
): void {
  for (const { path, line, message } of problems) logger.warn({ key: path, line }, `${path}: ${message}`)
  if (more > 0) logger.warn({}, `${more} more warnings; run peage check to list them`)
}

/** Formats a diagnostic as `FILE:LINE:COL  path.to.key  message`. Scripts may parse this format, so never change it. */
export function formatDiagnostic({ file, line, column, path, message }: LocatedDiagnostic): string {
  return `${file}:${line}:${column}  ${path || '(file)'}  ${message}`
}

/**
 * Sorts diagnostics in file order. Several YAML aliases can lead to the same place. So the same message is reported
 * only once per place.
 */
export function locateDiagnostics(file: string, text: string, diagnostics: readonly Diagnostic[]): Problems {
  const positionOf = positionsIn(text)
  const placed = diagnostics
    .map(diagnostic => ({ diagnostic, at: positionOf(diagnostic.offset) }))
    .sort((a, b) => a.at.line - b.at.line || a.at.column - b.at.column)
  const problems: LocatedDiagnostic[] = []
  let more = 0
  let last: Position | undefined
  let saidThere = new Set<string>()
  for (const { diagnostic, at } of placed) {
    const { path, message } = diagnostic
    if (last?.line !== at.line || last.column !== at.column) saidThere = new Set()
    last = at
    if (saidThere.has(message)) continue
    saidThere.add(message)
    if (problems.length < mostProblems) problems.push({ file, ...at, path, message: inOneLine(message) })
    else more += 1
  }
  return { problems, more }
}

/** Replaces line breaks. A message can contain line breaks if it quotes a name from the file. */
function inOneLine(message: string): string {
  return message.replace(/\p{Cc}+/gu, ' ')
}

/** Appends `key` to a path. The appended text is, for example, `routes`, `[0]`, `.upstream` or `["an odd name"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}

export interface Position {
  /** Line and column both start at 1. */
  readonly line: number
  readonly column: number
}

/**
 * @returns a function that converts an offset to a position; an offset after the last text becomes the end of this
 *   text
 */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const end = text.trimEnd().length
  return offset => {
    // An error at the end of the file, such as an unclosed quote, is shown at the end of the last line with text.
    const within = Math.min(offset, end)
    const line = countWhile(starts, start => start <= within)
    return { line, column: within - (starts[line - 1] ?? 0) + 1 }
  }
}

/** Counts the leading items for which `holds` is true, by binary search. `holds` must be false for all other items. */
export function countWhile<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let least = 0
  let most = items.length
  while (least < most) {
    const middle = (least + most) >>> 1
    if (holds(items[middle] as T)) least = middle + 1
    else most = middle
  }
  return least
}

/** Appends one key or index to a JSON Pointer (RFC 6901). */
export function appendToPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

export function unescapeKey(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
