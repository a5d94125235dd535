// What is wrong with a file, where, and how it is reported.

/** One error in the file, found at any stage of loading; it becomes a LocatedDiagnostic once all are known. */
export interface Diagnostic {
  /** Characters from the start of the file. */
  readonly offset: number
  /** `routes[0].upstream`; empty for the file as a whole. */
  readonly path: string
  readonly message: string
}

export interface LocatedDiagnostic extends Position {
  /** As named on the command line. */
  readonly file: string
  readonly path: string
  readonly message: string
}

/** A problem as operators may see it. */
export interface ListedProblem extends Position {
  readonly path: string
  readonly text: string
}

/** The first diagnostics of a file, in file order. */
export interface Problems {
  readonly problems: readonly LocatedDiagnostic[]
  /** How many more there are. */
  readonly more: number
  /** Diagnostics that would not keep the file from being used. */
  readonly warnings?: Problems
  /** The same problems without a secret, for operators; only of a file to serve with. */
  readonly listed?: readonly ListedProblem[]
}

/** Reported per file. The rest are reported once these are fixed. */
export const mostProblems = 100

/** A line for each, one for those left out, and the warnings last. */
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

/** Logs each warning as a line of its own. */
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

/** In file order. Equal messages at one place are one diagnostic, however many aliases lead there. */
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

/** A message may repeat a name of the file, which may contain line ends. */
function inOneLine(message: string): string {
  return message.replace(/\p{Cc}+/gu, ' ')
}

/** `routes`, `[0]`, `.upstream`, `["an odd name"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}

/** As editors count. */
export interface Position {
  /** Both count from 1. */
  readonly line: number
  readonly column: number
}

/** @returns the position of an offset; past the text, the end of its last line */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const end = text.trimEnd().length
  return offset => {
    // An error at the end of the file (an unclosed quote) is shown at the end of its last line.
    const within = Math.min(offset, end)
    const line = countWhile(starts, start => start <= within)
    return { line, column: within - (starts[line - 1] ?? 0) + 1 }
  }
}

/** Counts the leading items that meet a condition which no later item meets, by binary search. */
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

/** Appends one key or index to a JSON Pointer (RFC 6901): so ajv and the rules name a place in the file. */
export function appendToPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The key that one step of a JSON Pointer stands for. */
export function unescapeKey(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
