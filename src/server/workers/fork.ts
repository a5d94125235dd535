// Forks one worker process, connects it with an RPC channel, and observes it until it exits.
import cluster, { type Worker } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { rescueConnections } from '../../http/node-internals.ts'
import type { PrimaryApi, WorkerApi } from './protocol.ts'
import { createRpcChannel, type RpcChannel } from './rpc.ts'

export interface WorkerProcess {
  /** Undefined if the process could not be created, for example because the machine had no resources left. */
  readonly pid: number | undefined
  /** Resolves when the worker accepts calls, or has exited. */
  readonly ready: Promise<unknown>
  readonly channel: RpcChannel<WorkerApi>
  /** Resolves to the exit status when the process has exited. Never rejects. */
  readonly ended: Promise<ExitStatus>
  /** Sends SIGKILL. */
  kill(): void
}

export interface ExitStatus {
  readonly code?: number
  readonly signal?: string
  readonly reason?: string
}

export type Fork = () => WorkerProcess

/**
 * The size in bytes above which a freed block of memory returns to the system at once. Without this setting, glibc
 * raises the threshold by itself and keeps freed memory for each thread. Each thread that hashed a password kept 19
 * MiB. glibc reads the setting only when a process starts.
 */
const allocation = { MALLOC_MMAP_THRESHOLD_: '1048576' }

const program = fileURLToPath(new URL('../../worker.js', import.meta.url))

/**
 * Creates a function that forks workers. Workers share one listening socket. This process accepts the connections and
 * gives them to the workers in turn.
 * @throws Error if this process is itself a worker of another cluster
 */
export function createFork(answers: Omit<PrimaryApi, 'hello'>): Fork {
  if (!cluster.isPrimary)
    throw new Error('this process is already a worker of a Node cluster. Set server.workers to 1.')
  // Uses structured clones, because a configuration contains values that JSON cannot represent.
  cluster.setupPrimary({ exec: program, args: [], serialization: 'advanced' })
  return () => {
    let worker: Worker
    try {
      worker = cluster.fork(allocation)
    } catch (error) {
      return failedFork(Promise.resolve(reasonOf(error)))
    }
    const { pid } = worker.process
    // The fork failed, and an `error` event follows. Without a pid, a signal to the worker would go to the process
    // group of this process. So the returned worker ignores signals.
    if (pid === undefined) {
      return failedFork(new Promise(resolve => worker.once('error', error => resolve(reasonOf(error)))))
    }
    rescueConnections(worker)
    let onHello = async () => {}
    const hello = new Promise<void>(resolve => {
      onHello = async () => resolve()
    })
    const channel = createRpcChannel<WorkerApi>(worker, { ...answers, hello: onHello })
    const ended = new Promise<ExitStatus>(resolve => {
      worker.once('exit', (code: number | null, signal: string | null) =>
        resolve({ ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) }),
      )
    })
    // The process has started, so an error concerns only a single message and is ignored.
    worker.on('error', () => {})
    void ended.then(channel.close)
    return {
      pid,
      ready: Promise.race([hello, ended]),
      channel,
      ended,
      kill: () => worker.process.kill('SIGKILL'),
    }
  }
}

function failedFork(ended: Promise<ExitStatus>): WorkerProcess {
  return {
    pid: undefined,
    ready: ended,
    channel: { call: async () => undefined, close() {} },
    ended,
    kill() {},
  }
}

function reasonOf(error: unknown): ExitStatus {
  return { reason: error instanceof Error ? error.message : String(error) }
}
