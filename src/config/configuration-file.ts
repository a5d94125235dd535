// The file that ops write: loaded when it is asked for, and watched for what they save.
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type ConfigSource, type Loaded, loadConfig } from './load.ts'
import type { Problems } from './problem.ts'
import { readLimited } from './read-file.ts'

export interface ConfigurationFile {
  /** The file as it is now, with all that it names. */
  load(): Loaded | Problems
  /**
   * Calls back when the file is another one than was loaded last; never for a pipe (`-c <(…)`), which says it once.
   * @returns ends it
   */
  watch(onChange: () => void): () => void
}

/** Milliseconds between two looks at the file. */
const interval = 200

/** @param path of `source.file`, absolute */
export function createConfigurationFile(source: ConfigSource, path: string): ConfigurationFile {
  const { file, readFile: read = readLimited } = source
  /** The file's text as it was loaded last, or why there was none. */
  let loaded: string | undefined

  function readNoting(name: string, maxBytes: number): string {
    if (name !== file) return read(name, maxBytes)
    try {
      const text = read(name, maxBytes)
      loaded = text
      return text
    } catch (error) {
      loaded = unreadable(error)
      throw error
    }
  }

  return {
    load: () => loadConfig({ ...source, readFile: readNoting }),
    watch(onChange) {
      if (isPipe(path)) return () => {}
      let isOver = false
      let before: string | undefined
      let timer = setTimeout(look, interval).unref()
      // Read, rather than watched for events: an editor renames, Kubernetes swaps a symlink two folders up, a network
      // file system says nothing.
      async function look(): Promise<void> {
        const now = await readFile(path, 'utf8').catch(unreadable)
        if (isOver) return
        // Twice the same: what is half written may look whole, with half of the routes.
        if (now !== loaded && now === before) onChange()
        before = now
        timer = setTimeout(look, interval).unref()
      }
      return () => {
        isOver = true
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

/** Of no file the text. */
function unreadable(error: unknown): string {
  return `\0${(error as NodeJS.ErrnoException).code}`
}
