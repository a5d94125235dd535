// The raw results of a run: machine, settings, and all measurements.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Round } from './rounds.ts'

export interface Recording {
  /** The date of the start, for example `2026-11-25`. */
  readonly date: string
  readonly machine: Machine
  /** How Postgres and Redis were found or started, as text; null if the gateway used its embedded database. */
  readonly stores: string | null
  /** The versions of the peers. */
  readonly versions: readonly string[]
  readonly settings: {
    readonly rounds: number
    readonly time: number
    readonly connections: number
    readonly rate: number
    readonly busy: number
  }
  /** The names of the builds that `--also` added to the run. */
  readonly builds: readonly string[]
  /** The rows in the order of the tables. `rate`: the fixed rate in requests per second; null if there is none. */
  readonly rows: readonly { readonly name: string; readonly rate: number | null }[]
  readonly rounds: readonly { readonly counts: boolean; readonly rows: Round }[]
  /** The reasons why rows could not run, by row name. */
  readonly absent: Readonly<Record<string, string>>
  /** The errors of the rows that failed, by row name. */
  readonly failed: Readonly<Record<string, string>>
}

export interface Machine {
  readonly processors: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  /** The commit of the measured gateway. */
  readonly commit: string
}

/**
 * The root folder of the checkout. The benchmark runs as a compiled copy in another folder. The package.json of the
 * copy is a link to the package.json of the checkout, so the target of the link shows the root.
 */
const root = dirname(realpathSync(fileURLToPath(new URL('../package.json', import.meta.url))))

export function inCheckout(path: string): string {
  return join(root, path)
}

export function thisMachine(): Machine {
  const [first] = cpus()
  return {
    processors: `${cpus().length} × ${first?.model.trim() ?? 'unknown'}`,
    memoryGiB: totalmem() / 2 ** 30,
    kernel: `Linux ${release()}`,
    node: process.versions.node,
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim(),
  }
}

const recordingFile = 'docs/dev/benchmark.json'

export function readRecording(): Recording {
  return JSON.parse(readFileSync(inCheckout(recordingFile), 'utf8'))
}

/** Writes the recording from which docs/benchmark.md and the charts are generated. */
export function keepRecording(recording: Recording): void {
  writeFileSync(inCheckout(recordingFile), recordingText(recording))
}

/** Writes files into the folder `bench/results`, which git ignores. @returns the path of the folder */
export function writeResults(files: Readonly<Record<string, string>>): string {
  const folder = inCheckout('bench/results')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** Returns a copy of the recording in which all numbers are rounded to six significant digits. */
export function rounded(recording: Recording): Recording {
  return JSON.parse(JSON.stringify(recording), (_, value) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value,
  )
}

/** Returns the recording as JSON, with one line for each measurement. */
export function recordingText(recording: Recording): string {
  const lines = JSON.stringify(recording, undefined, 1)
  return `${lines.replace(/\{\s+("(?:requests|name)"[^{}]+?)\s+\}/g, (_, fields: string) => `{ ${fields.replace(/\n\s*/g, ' ')} }`)}\n`
}
