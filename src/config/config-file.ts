// The configuration file: read at the start and for each reload, and polled for changes.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { watchContent } from '../async/watch-content.ts'
import type { Problems } from './diagnostics.ts'
import { createDigestPoll } from './file-digest.ts'
import type { Listing } from './listing.ts'
import type { LoadedConfig } from './load.ts'
import { createLoadInWorker, type LoadInWorker, type ReloadResult } from './load-in-worker.ts'
import { type FileSource, loadSource } from './load-source.ts'

export interface ConfigFile {
  /** Reads the file and everything that it names, and blocks the process meanwhile. */
  load(): LoadedConfig | Problems
  /** The same without blocking. @throws Error if the read itself fails, never for the file's content */
  reload(): Promise<ReloadResult>
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
  loadInWorker?: LoadInWorker
  pollIntervalMs?: number
}

export function createConfigFile(
  source: FileSource,
  { loadInWorker = createLoadInWorker(), pollIntervalMs = 200 }: Options = {},
): ConfigFile {
  const path = resolve(source.folder, source.file)
  let last: string | undefined
  let listing: Listing | undefined
  let running = source

  return {
    load() {
      const { read, digest } = loadSource(source)
      last = digest
      if ('config' in read) {
        listing = read.listing
        running = { ...source, workers: read.config.server.workers }
      }
      return read
    },
    listing: () => listing,
    async reload() {
      const read = await loadInWorker(running)
      // Undefined if the read did not finish: the previous file, saved again, is then a change.
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
