// Reads what a load or reload needs: the configuration, the line numbers for the log, and the file's digest.
import { resolve } from 'node:path'
import type { Problems } from './diagnostics.ts'
import { digestOf, unreadable } from './file-digest.ts'
import { type LoadedConfig, loadConfig } from './load.ts'
import { type ReadFile, readLimited, readLimitedBytes, reportingFailures } from './read-file.ts'

/** Plain data, because a worker thread receives it. */
export interface FileSource {
  /** As named on the command line. */
  readonly file: string
  /** The base of relative file names. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cores?: number
  /** The workers that already run. */
  readonly workers?: number
  /** How long a pipe may take to end. Without it, a pipe may take as long as it needs. */
  readonly maxWaitMs?: number
}

interface LoadedSource {
  readonly read: LoadedConfig | Problems
  /** The digest of the file's bytes, or the reason why the file is unreadable. */
  readonly digest: string
  /** The error of a machine that could not read a file. `read` is then no result about the configuration. */
  readonly failure?: unknown
}

/** Never throws for the file's content. */
export function loadSource(source: FileSource): LoadedSource {
  const { file, folder, maxWaitMs } = source
  let digest: string | undefined
  const readFile: ReadFile = (path, maxBytes) => {
    const whole = resolve(folder, path)
    // Only the first read is the configuration's own: `${file:}` may name the file too.
    if (path !== file || digest !== undefined) return readLimited(whole, maxBytes, maxWaitMs)
    try {
      const bytes = readLimitedBytes(whole, maxBytes, maxWaitMs)
      digest = digestOf([bytes])
      return bytes.toString('utf8')
    } catch (error) {
      digest = unreadable(error)
      throw error
    }
  }
  let failure: unknown
  const reporting = reportingFailures(readFile, error => {
    failure = error
  })
  const read = loadConfig({ ...source, readFile: reporting, toServe: true })
  return { read, digest: digest ?? '', failure }
}
