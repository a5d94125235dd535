// Reads the configuration without blocking requests: in a thread with its own heap, which ends once idle.
import { Worker } from 'node:worker_threads'
import { inSlices } from '../../async/steps.ts'
import { locateDiagnostics, type Problems } from '../diagnostics.ts'
import type { LoadedConfig } from '../load.ts'
import type { Config } from '../schema/schema.ts'
import { type PackedConfig, unpackSteps } from './packed-config.ts'
import type { FileSource } from './read-again.ts'

/** What a reload applies, or why there is nothing to apply. */
export type Reread = { readonly digest: string | undefined } & (
  | Problems
  | ({ readonly config: Config } & Beside)
)

/** What is read along with the configuration. */
type Beside = Pick<LoadedConfig, 'lines' | 'warnings'>

/** @throws Error if the thread fails */
export type ReadApart = () => Promise<Reread>

export type ThreadAnswer =
  | ({ readonly packed: PackedConfig; readonly digest: string } & Beside)
  | { readonly problems: Problems; readonly digest: string }
  | { readonly fault: string }

/** For everything that the thread reads; the active configuration is not in its heap. */
const maxHeapMiB = 768
/** The thread waits this long for another reload: starting it takes longer than reading a short file. */
const idleMs = 5_000
/** On a reload a pipe must end within this time; at the start it may take longer. */
const maxWaitMs = 5_000

export function createReadApart(source: FileSource): ReadApart {
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(new URL('./load-thread.js', import.meta.url), {
      workerData: { ...source, maxWaitMs } satisfies FileSource,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB },
    })
    // The thread does not keep the process from exiting.
    started.unref()
    started.once('exit', () => {
      if (thread === started) thread = undefined
    })
    return started
  }

  function end(): void {
    void thread?.terminate()
    thread = undefined
  }

  return async () => {
    clearTimeout(idle)
    thread ??= start()
    try {
      const answer = await ask(thread)
      if ('fault' in answer) throw new Error(answer.fault)
      if ('problems' in answer) return { ...answer.problems, digest: answer.digest }
      const { packed, ...beside } = answer
      return { config: await inSlices(unpackSteps(packed)), ...beside }
    } catch (error) {
      end()
      if ((error as NodeJS.ErrnoException).code !== 'ERR_WORKER_OUT_OF_MEMORY') throw error
      const message = `takes more than ${maxHeapMiB} MiB of memory to read`
      return { ...locateDiagnostics(source.file, '', [{ offset: 0, path: '', message }]), digest: undefined }
    } finally {
      idle = setTimeout(end, idleMs).unref()
    }
  }
}

/** @throws Error if the thread ends instead */
function ask(thread: Worker): Promise<ThreadAnswer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      thread.off('message', onAnswer).off('error', onError).off('exit', onExit)
      act()
    }
    const onAnswer = (answer: ThreadAnswer) => settle(() => resolve(answer))
    const onError = (error: Error) => settle(() => reject(error))
    const onExit = () => onError(new Error('the thread that reads the configuration has ended'))
    thread.on('message', onAnswer).on('error', onError).on('exit', onExit)
    thread.postMessage('read')
  })
}
