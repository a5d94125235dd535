// The configuration file: read at the start and for each reload, and polled for changes.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { watchContent } from '../async/watch-content.ts'
import type { Problems } from './diagnostics.ts'
import { createDigestPoll } from './file-digest.ts'
import type { Listing } from './listing.ts'
import type { LoadedConfig } from './load.ts'
import { type FileSource, readAgain } from './reading/read-again.ts'
import { createReadApart, type ReadApart, type Reread } from './reading/read-apart.ts'

export interface ConfigFile {
  /** Reads the file and everything that it names, and blocks the process meanwhile. */
  load(): LoadedConfig | Problems
  /** The same without blocking. @throws Error if the read itself fails, never for the file's content */
  reload(): Promise<Reread>
  /** Of what was loaded at the start. */
  listing(): Listing | undefined
  /** Digest of the bytes that were read last. */
  digest(): string | undefined
  /**
   * Calls back when the file differs from what was read last; never for a pipe (`-c <(…)`), which is readable once.
   * @returns a function that stops watching
   */
  watch(onChange: () => void): () => void
}

interface Options {
  /** Reads the file for a reload. */
  readApart?: ReadApart
  pollIntervalMs?: number
}

export function createConfigFile(
  source: FileSource,
  { readApart = createReadApart(), pollIntervalMs = 200 }: Options = {},
): ConfigFile {
  const path = resolve(source.folder, source.file)
  let last: string | undefined
  let listing: Listing | undefined
  let running = source

  return {
    load() {
      const { read, digest } = readAgain(source)
      last = digest
      if ('config' in read) {
        listing = read.listing
        running = { ...source, workers: read.config.server.workers }
      }
      return read
    },
    listing: () => listing,
    async reload() {
      const read = await readApart(running)
      // Undefined where it could not even be read: the file of before, saved again, is a change then.
      last = read.digest
      return read
    },
    digest: () => last,
    watch(onChange) {
      if (isPipe(path)) return () => {}
      return watchContent({
        read: createDigestPoll(path),
        inUse: () => last,
        intervalMs: pollIntervalMs,
        onChange,
      })
    },
  }
}

/** Or anything else that cannot be read twice. A missing file may come back. */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile()
  } catch {
    return false
  }
}
