// The configuration file: read at the start and for each reload, and polled for changes.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Problems } from './diagnostics.ts'
import { createLook } from './file-digest.ts'
import type { LoadedConfig } from './load.ts'
import { type FileSource, readAgain } from './reading/read-again.ts'
import { createReadApart, type Reread } from './reading/read-apart.ts'

export interface ConfigFile {
  /** Reads the file and everything that it names, and blocks the process meanwhile. */
  load(): LoadedConfig | Problems
  /** The same without blocking. @throws Error if the read itself fails, never for the file's content */
  reload(): Promise<Reread>
  /** Digest of the bytes that were read last. */
  digest(): string | undefined
  /**
   * Calls back when the file differs from what was read last; never for a pipe (`-c <(…)`), which is readable once.
   * @returns a function that stops watching
   */
  watch(onChange: () => void): () => void
}

const pollIntervalMs = 200

/** @param readApart reads the file for a reload */
export function createConfigFile(
  source: FileSource,
  readApart: () => Promise<Reread> = createReadApart(source),
): ConfigFile {
  const path = resolve(source.folder, source.file)
  let last: string | undefined

  return {
    load() {
      const { read, digest } = readAgain(source)
      last = digest
      return read
    },
    async reload() {
      const read = await readApart()
      last = read.digest ?? last
      return read
    },
    digest: () => last,
    watch(onChange) {
      if (isPipe(path)) return () => {}
      const poll = createLook(path)
      let isStopped = false
      let previousText: string | undefined
      let asked: string | undefined
      let timer = setTimeout(turn, pollIntervalMs).unref()
      // Polled rather than watched for events: an editor renames the file, Kubernetes swaps a symlink two folders up,
      // a network file system sends no events.
      async function turn(): Promise<void> {
        const text = await poll()
        if (isStopped) return
        // Only after two equal polls: a half-written file may look complete, with half of its routes. Only once per
        // content: the reload may take longer than the poll interval.
        if (text !== undefined && text !== last && text === previousText && text !== asked) {
          asked = text
          onChange()
        } else if (text === last) asked = undefined
        previousText = text
        timer = setTimeout(turn, pollIntervalMs).unref()
      }
      return () => {
        isStopped = true
        clearTimeout(timer)
      }
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
