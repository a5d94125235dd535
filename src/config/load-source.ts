// Loads the configuration, and computes the digest of its file.
import { resolve } from 'node:path'
import type { Problems } from './diagnostics.ts'
import { digestOf, unreadable } from './file-digest.ts'
import { type LoadedConfig, loadConfig } from './load.ts'
import { type ReadFile, readLimited, readLimitedBytes, reportingFailures } from './read-file.ts'

/** The members are plain data, because a worker thread receives them. */
export interface FileSource {
  /** The file name as given on the command line. */
  readonly file: string
  /** Relative file names are resolved against this folder. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cores?: number
  /** The number of worker processes that already run. */
  readonly workers?: number
  readonly maxWaitMs?: number
}

interface LoadedSource {
  readonly read: LoadedConfig | Problems
  /** The digest of the file's bytes, or the reason why the file is unreadable. */
  readonly digest: string
  /**
   * The system error if a file could not be read for a reason outside the file, for example too many open files. In
   * that case, `read` is not valid.
   */
  readonly failure?: unknown
}

export function loadSource(source: FileSource): LoadedSource {
  const { file, folder, maxWaitMs } = source
  let digest: string | undefined
  const readFile: ReadFile = (path, maxBytes) => {
    const whole = resolve(folder, path)
    // The first read of this path reads the configuration itself. A later read comes from a `${file:}` that names the
    // same file.
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
