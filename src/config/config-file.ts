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
   * @throws Error if the machine could not read the files; errors in the files are part of the result
   */
  reload(): Promise<ReloadResult>
  /** Returns the listing of the configuration that was loaded at startup. */
  listing(): Listing | undefined
  digest(): string | undefined
  /**
   * Calls `onChange` when the content of the file differs from the content that was read last. Does not watch a pipe
   * (`-c <(…)`), because a pipe can be read only once.
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
      // If the read did not finish, the digest is undefined and differs from every later digest. So the next save
      // counts as a change, even if it restores the content from before the unfinished read.
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
 * Whether the path is a pipe or something else that is not a regular file. A missing file counts as a regular file,
 * because it may be created again.
 */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile()
  } catch {
    return false
  }
}
