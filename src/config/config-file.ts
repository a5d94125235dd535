// The file that ops write: read when it is asked for, and watched for what they save.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Problems } from './diagnostics.ts'
import { createLook } from './file-digest.ts'
import type { LoadedConfig } from './load.ts'
import { type FileSource, readAgain } from './reading/read-again.ts'
import { createReadApart, type Reread } from './reading/read-apart.ts'

export interface ConfigFile {
  /** The file as it is now, with all that it names; the process does nothing else meanwhile. */
  load(): LoadedConfig | Problems
  /** The same beside what the process serves. @throws Error where that fails, whatever is in the file */
  reload(): Promise<Reread>
  /** Of the bytes that were read last. */
  digest(): string | undefined
  /**
   * Calls back when the file is another one than was read last; never for a pipe (`-c <(…)`), which says it once.
   * @returns ends it
   */
  watch(onChange: () => void): () => void
}

/** Milliseconds between two looks at the file. */
const pollIntervalMs = 200

/** @param readApart how a reload reads */
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
      // Looked at, rather than watched for events: an editor renames, Kubernetes swaps a symlink two folders up, a
      // network file system says nothing.
      async function turn(): Promise<void> {
        const text = await poll()
        if (isStopped) return
        // Twice the same: what is half written may look whole, with half of the routes. Asked once: to read it again may
        // take longer than the time to the next look.
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

/** Or whatever else cannot be read twice. What is away may come back. */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile()
  } catch {
    return false
  }
}
