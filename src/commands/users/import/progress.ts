// Prints the problems and the progress of an import to standard error.
import type { Writable } from 'node:stream'

export interface ProgressState {
  /** The number of the line that was read last. */
  readonly line: number
  /** The number of users whose result is known. */
  readonly users: number
  readonly problems: number
  /** The part of the file that was read, from 0 to 1. Undefined if the size of the file is not known. */
  readonly share: number | undefined
}

export interface Progress {
  /** Prints lines above the progress bar. Resolves when they are written, so the import waits for a slow output. */
  print(lines: string): Promise<void>
  /** Removes the progress bar. */
  stop(): void
}

const barIntervalMs = 250
const lineIntervalMs = 10_000
const barWidth = 20

/** Shows a progress bar on a terminal. Otherwise, prints a line every 10 s. */
export function startProgress(output: Writable & { isTTY?: boolean }, state: () => ProgressState): Progress {
  const startedAt = performance.now()
  const isTerminal = output.isTTY === true
  const describe = () => {
    const { line, users, problems } = state()
    const seconds = (performance.now() - startedAt) / 1_000
    return `${line} lines, ${Math.round(users / seconds)} users/s, ${problems} faults`
  }
  const draw = () => output.write(`\r${barOf(state().share)}${describe()}${eraseToEnd}`)
  const timer = isTerminal
    ? setInterval(draw, barIntervalMs)
    : setInterval(() => output.write(`${describe()}\n`), lineIntervalMs)
  return {
    print: lines =>
      new Promise(resolve => {
        output.write(isTerminal ? `\r${eraseToEnd}${lines}` : lines, () => resolve())
      }),
    stop() {
      clearInterval(timer)
      if (isTerminal) output.write(`\r${eraseToEnd}`)
    },
  }
}

/** Erases the rest of the line (control sequence EL of ECMA-48). */
const eraseToEnd = '\u001b[K'

function barOf(share: number | undefined): string {
  if (share === undefined) return ''
  const full = Math.round(Math.min(share, 1) * barWidth)
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}] `
}
