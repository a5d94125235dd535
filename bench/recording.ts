// The raw result of a run: the machine, the settings, and every measurement of every round.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Round } from './rounds.ts'

export interface Recording {
  /** Of the start, as `2026-11-25`. */
  readonly date: string
  readonly machine: Machine
  /** Where Postgres and Redis come from; null if the gateway ran on its embedded database. */
  readonly stores: string | null
  /** Of the peers. */
  readonly versions: readonly string[]
  readonly settings: {
    readonly rounds: number
    readonly time: number
    readonly connections: number
    readonly rate: number
    readonly busy: number
  }
  /** Other builds that were measured in the same run. */
  readonly builds: readonly string[]
  /** In the order of the tables; `rate` in requests per second, null for a row without a fixed rate. */
  readonly rows: readonly { readonly name: string; readonly rate: number | null }[]
  readonly rounds: readonly { readonly counts: boolean; readonly rows: Round }[]
  /** Rows that could not take part, and why. */
  readonly absent: Readonly<Record<string, string>>
  /** Rows that responded wrongly, and how. */
  readonly failed: Readonly<Record<string, string>>
}

export interface Machine {
  readonly processors: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  /** Of the gateway that was measured. */
  readonly commit: string
}

/** The checkout. The benchmark runs as a compiled copy, in which package.json is a link. */
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

/** Writes the recording of which docs/benchmark.md and the charts are made. */
export function keepRecording(recording: Recording): void {
  writeFileSync(inCheckout(recordingFile), recordingText(recording))
}

/** Writes files into the folder of results, which git ignores. Returns the folder. */
export function writeResults(files: Readonly<Record<string, string>>): string {
  const folder = inCheckout('bench/results')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** Returns the recording as its file has it: numbers have six significant digits. */
export function rounded(recording: Recording): Recording {
  return JSON.parse(JSON.stringify(recording), (_, value) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value,
  )
}

/** JSON with one line for each measurement. */
export function recordingText(recording: Recording): string {
  const lines = JSON.stringify(recording, undefined, 1)
  return `${lines.replace(/\{\s+("(?:requests|name)"[^{}]+?)\s+\}/g, (_, fields: string) => `{ ${fields.replace(/\n\s*/g, ' ')} }`)}\n`
}
