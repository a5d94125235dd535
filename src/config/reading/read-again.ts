// What a reload reads: the configuration, what of its places the log names, and the bytes of the file as a digest.
import { resolve } from 'node:path'
import type { Problems } from '../diagnostics.ts'
import { digestOf, unreadable } from '../file-digest.ts'
import { type LoadedConfig, loadConfig } from '../load.ts'
import { type ReadFile, readLimited, readLimitedBytes } from '../yaml/read-file.ts'

/** Plain data: it is sent to a thread. */
export interface FileSource {
  /** As it was named on the command line. */
  readonly file: string
  /** What relative names are relative to. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cores?: number
  /** How long a pipe may take; without it as long as it does. */
  readonly maxWaitMs?: number
}

export interface ReadAgain {
  readonly read: LoadedConfig | Problems
  /** Of the file's bytes, or why there were none. */
  readonly digest: string
}

/** Never throws for what is in the file. */
export function readAgain({ file, folder, env, cores, maxWaitMs }: FileSource): ReadAgain {
  let digest: string | undefined
  const readFile: ReadFile = (path, maxBytes) => {
    const whole = resolve(folder, path)
    // Once: `${file:}` may name it too.
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
  const read = loadConfig({ file, env, readFile, toServe: true, ...(cores === undefined ? {} : { cores }) })
  return { read, digest: digest ?? '' }
}
