// Reads the configuration file at startup and on each reload, and polls it for changes.
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
  /** Reads the file and all files that it references. Blocks the event loop until it is done. */
  load(): LoadedConfig | Problems
  /**
   * Reads the same files without blocking the event loop.
   * @throws Error if the read itself fails, but never because of the file's content
   */
  reload(): Promise<ReloadResult>
  /** Returns the listing of the configuration that was loaded at startup. */
  listing(): Listing | undefined
  digest(): string | undefined
  /**
   * Calls `onChange` when the file differs from its last read. A pipe (`-c <(…)`) is never reported, because it can be
   * read only once.
   */
  watch(onChange: () => void): () => void
}

interface Options {
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
      // If the read did not finish, the digest is undefined. It then differs from every later digest, so the file
      // counts as changed even if its previous content is saved again.
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

/**
 * Whether the path is something other than a regular file, for example a pipe, which can be read only once. A missing
 * file counts as regular, because it may come back.
 */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile()
  } catch {
    return false
  }
}
