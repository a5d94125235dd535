// Reads the configuration without blocking requests: in a process with its own heap, which ends once idle.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inSlices } from '../../async/steps.ts'
import { locateDiagnostics, type Problems } from '../diagnostics.ts'
import type { LoadedConfig } from '../load.ts'
import type { Config } from '../sections/schema.ts'
import { unpackSteps } from './packed-config.ts'
import type { FileSource } from './read-again.ts'

/** What a reload applies, or why there is nothing to apply. */
export type Reread = { readonly digest: string | undefined } & (
  | Problems
  | ({ readonly config: Config } & Beside)
)

/** What is read along with the configuration. */
type Beside = Pick<LoadedConfig, 'lines' | 'warnings' | 'listing'>

/** @throws Error if the process fails, or if the machine could not read the files (`machineFailure`) */
export type ReadApart = (source: FileSource) => Promise<Reread>

/** Any number of batches of routes, then one of the others. */
export type ReadAnswer = { readonly routes: Uint8Array } | LastAnswer

type LastAnswer =
  | ({ readonly rest: Uint8Array; readonly digest: string } & Beside)
  | { readonly problems: Problems; readonly digest: string }
  | { readonly error: string; readonly code: string | undefined }

/** For everything that is read; the active configuration is not in this heap. */
const maxHeapMiB = 768
/** The process waits this long for another reload: starting it takes longer than reading a short file. */
const idleMs = 5_000
/** On a reload a pipe must end within this time; at the start it may take longer. */
const maxWaitMs = 5_000

/** V8's helper threads would compete with requests at full priority. */
const nodeOptions = [`--max-old-space-size=${maxHeapMiB}`, '--single-threaded']

export function createReadApart(): ReadApart {
  let reader: ChildProcess | undefined
  let idle: NodeJS.Timeout | undefined

  function start(): ChildProcess {
    const started = fork(fileURLToPath(new URL('./load-process.js', import.meta.url)), {
      env: {},
      execArgv: nodeOptions,
      // V8 prints a page when memory runs out.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    })
    // It does not keep the gateway from exiting, and ends with it.
    started.unref()
    started.channel?.unref()
    started.once('exit', () => {
      if (reader === started) reader = undefined
    })
    return started
  }

  function end(): void {
    // Without an id, the signal would go to the gateway's own process group.
    if (reader?.pid !== undefined) reader.kill('SIGKILL')
    reader = undefined
  }

  return async source => {
    clearTimeout(idle)
    reader ??= start()
    try {
      const { last, routes } = await ask(reader, { ...source, maxWaitMs })
      if ('error' in last) throw Object.assign(new Error(last.error), { code: last.code })
      if ('problems' in last) return { ...last.problems, digest: last.digest }
      const { rest, ...beside } = last
      return { config: await inSlices(unpackSteps({ rest, routes })), ...beside }
    } catch (error) {
      end()
      if (!(error instanceof OutOfMemory)) throw error
      const message = `takes more than ${maxHeapMiB} MiB of memory to read`
      return { ...locateDiagnostics(source.file, '', [{ offset: 0, path: '', message }]), digest: undefined }
    } finally {
      idle = setTimeout(end, idleMs).unref()
    }
  }
}

class OutOfMemory extends Error {}

/**
 * @throws OutOfMemory if V8 ends the process
 * @throws Error if the process ends in another way
 */
function ask(reader: ChildProcess, source: FileSource): Promise<{ last: LastAnswer; routes: Uint8Array[] }> {
  return new Promise((resolve, reject) => {
    const routes: Uint8Array[] = []
    const settle = (act: () => void) => {
      reader.off('message', onAnswer).off('error', onError).off('exit', onExit)
      act()
    }
    const onAnswer = (answer: ReadAnswer) => {
      if ('routes' in answer) routes.push(answer.routes)
      else settle(() => resolve({ last: answer, routes }))
    }
    const onError = (error: Error) => settle(() => reject(error))
    const onExit = (_code: number | null, signal: string | null) =>
      onError(
        signal === 'SIGABRT'
          ? new OutOfMemory()
          : new Error('the process that reads the configuration has ended'),
      )
    reader
      .on('message', onAnswer as (message: unknown) => void)
      .on('error', onError)
      .on('exit', onExit)
    // If the machine had no room for the process, an `error` event follows.
    if (reader.pid !== undefined) reader.send(source)
  })
}
