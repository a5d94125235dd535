// One worker's process: forked with a line to it, and watched to its end.
import cluster, { type Worker } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { PrimaryApi, WorkerApi } from './protocol.ts'
import { createRpcChannel, type RpcChannel } from './rpc.ts'
import { rescueConnections } from './socket-handoff.ts'

export interface WorkerProcess {
  /** Nothing where there is no process: the machine had no room for it. */
  readonly pid: number | undefined
  /** Resolves when it can be asked, or there is no process any more. */
  readonly ready: Promise<unknown>
  readonly channel: RpcChannel<WorkerApi>
  /** Resolves when there is no process any more, to how it ended; never rejects. */
  readonly ended: Promise<ExitStatus>
  /** At once, whatever it is doing. */
  kill(): void
}

export interface ExitStatus {
  readonly code?: number
  readonly signal?: string
  /** Why there never was a process. */
  readonly reason?: string
}

export type Fork = () => WorkerProcess

const program = fileURLToPath(new URL('../../worker.js', import.meta.url))

/**
 * Workers share what they listen on: this process accepts the connections, and hands them out in turn.
 * @throws Error where this process is a worker itself, of another cluster
 */
export function createFork(answers: Omit<PrimaryApi, 'hello'>): Fork {
  if (!cluster.isPrimary) throw new Error('server.workers cannot be used within another cluster; make it 1')
  // Structured clones: a configuration is not all JSON.
  cluster.setupPrimary({ exec: program, args: [], serialization: 'advanced' })
  return () => {
    let worker: Worker
    try {
      worker = cluster.fork()
    } catch (error) {
      return failedFork(error)
    }
    rescueConnections(worker)
    const { pid } = worker.process
    let onHello = async () => {}
    const hello = new Promise<void>(resolve => {
      onHello = async () => resolve()
    })
    const channel = createRpcChannel<WorkerApi>(worker, { ...answers, hello: onHello })
    const ended = new Promise<ExitStatus>(resolve => {
      worker.once('exit', (code: number | null, signal: string | null) =>
        resolve({ ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) }),
      )
      // Of a process that there is, an error is about one message.
      worker.on('error', error => pid === undefined && resolve({ reason: error.message }))
    })
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

function failedFork(error: unknown): WorkerProcess {
  const reason = error instanceof Error ? error.message : String(error)
  return {
    pid: undefined,
    ready: Promise.resolve(),
    channel: { call: async () => undefined, close() {} },
    ended: Promise.resolve({ reason }),
    kill() {},
  }
}
