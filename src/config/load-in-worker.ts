// Reads the configuration in a worker thread on a reload, so that the gateway continues to serve requests.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { locateDiagnostics, type Problems } from './diagnostics.ts'
import type { Listing } from './listing.ts'
import type { LoadedConfig } from './load.ts'
import type { FileSource } from './load-source.ts'
import { machineFailure } from './read-file.ts'

export type ReloadResult = ReadConfig | (Problems & Digest)

export interface ReadConfig extends Pick<LoadedConfig, 'config' | 'lines' | 'warnings'>, Digest {
  readonly listing?: Listing | undefined
}

interface Digest {
  /** Undefined if the read did not finish. */
  readonly digest: string | undefined
}

/**
 * @throws Error if the files could not be read for a reason outside the files, for example too many open files (see
 * `machineFailure`)
 */
export type LoadInWorker = (source: FileSource) => Promise<ReloadResult>

/** If a configured file is a pipe, a reload waits at most this time for its end. A start has no limit. */
const maxWaitMs = 5_000

/**
 * The memory limit of the thread. A configuration that needs more memory is refused, because it could crash the
 * gateway.
 */
const resourceLimits = { maxOldGenerationSizeMb: 768 }

interface Options {
  /** The time limit for reading the configuration. If the read takes longer, the configuration is refused. */
  limitMs?: number
  /** The compiled `load-worker.ts`. */
  program?: string | URL
}

export function createLoadInWorker({
  limitMs = 10_000,
  program = new URL('./load-worker.js', import.meta.url),
}: Options = {}): LoadInWorker {
  return async source => {
    const isLate = AbortSignal.timeout(limitMs)
    const workerData = { ...source, maxWaitMs }
    const worker = new Worker(program, { workerData, execArgv: [], env: {}, resourceLimits })
    // A running reload must not keep the process from exiting.
    worker.unref()
    // A thread may still fail while it is being terminated. Without a listener, that error would crash the gateway.
    worker.on('error', () => {})
    try {
      const [result] = await once(worker, 'message', { signal: isLate })
      return result
    } catch (error) {
      if (machineFailure(error) !== undefined) throw error
      const message = isLate.aborted
        ? `configuration took longer than ${limitMs / 1_000} s to read`
        : `configuration could not be read (${error instanceof Error ? error.message : error})`
      return { ...locateDiagnostics(source.file, '', [{ offset: 0, path: '', message }]), digest: undefined }
    } finally {
      // The end of the thread is not awaited. A system call may block the thread, for example on a lost mount.
      void worker.terminate()
    }
  }
}
