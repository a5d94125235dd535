// A place among the workers, held by one after another: whoever dies is replaced, later and later where that goes on.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { PackedConfig } from '../../config/reading/packed-config.ts'
import type { ExitStatus, Fork, WorkerProcess } from './fork.ts'
import type { WorkerApi } from './protocol.ts'
import type { RpcChannel } from './rpc.ts'

export interface WorkerSlot {
  /**
   * Resolves when the first worker listens, to where; from then on the place is kept held.
   * @throws Error with what kept it from listening
   */
  open(): Promise<string>
  /** Of the worker; nothing where none serves. */
  readonly call: RpcChannel<WorkerApi>['call']
  /** Nothing where none serves. */
  pid(): number | undefined
  /** Has the worker drain, and resolves when it has ended. @param time milliseconds until it is killed */
  end(time: number): Promise<void>
  /** Ends the worker at once. */
  kill(): void
}

interface Options {
  fork: Fork
  /** What is to be served with at the moment. */
  config(): PackedConfig
  logger: Logger
}

export function createWorkerSlot({ fork, config, logger }: Options): WorkerSlot {
  let worker: WorkerProcess | undefined
  let isServing = false
  let isEnding = false

  async function start(): Promise<string> {
    const started = fork()
    worker = started
    await started.ready
    let given = config()
    const answer = await started.channel.call('serve', undefined, given)
    let fault = answer !== undefined && 'fault' in answer ? answer.fault : undefined
    // What was reloaded while it started is not in what it was given.
    while (answer !== undefined && fault === undefined && given !== config()) {
      given = config()
      fault = (await started.channel.call('prepare', undefined, given))?.fault
      await started.channel.call('finish', undefined, 'commit')
    }
    if (answer !== undefined && 'address' in answer && fault === undefined) {
      isServing = !isEnding
      return answer.address
    }
    started.kill()
    const ending = await started.ended
    throw new Error(fault ?? `a worker ended ${describeExit(ending)} before it listened`)
  }

  async function supervise(): Promise<void> {
    for (let delay = 0; ; ) {
      const since = performance.now()
      const ending = await worker?.ended
      isServing = false
      if (isEnding) return
      delay = nextDelay(delay, performance.now() - since)
      const facts = { worker: worker?.pid, ...ending, delay_ms: delay }
      logger.error(facts, `a worker ended ${describeExit(ending)} and is replaced`)
      await sleep(delay, undefined, { ref: false })
      while (!isEnding && !(await replace())) {
        delay = nextDelay(delay, 0)
        await sleep(delay, undefined, { ref: false })
      }
      if (isEnding) return
    }
  }

  async function replace(): Promise<boolean> {
    try {
      await start()
      logger.info({ worker: worker?.pid }, 'a worker serves in its place')
      return true
    } catch (error) {
      if (!isEnding) logger.error({ err: error }, 'a worker could not be replaced')
      return false
    }
  }

  return {
    async open() {
      const address = await start()
      void supervise()
      return address
    },
    call: (...question) =>
      isServing && worker !== undefined ? worker.channel.call(...question) : Promise.resolve(undefined),
    pid: () => (isServing ? worker?.pid : undefined),
    async end(time) {
      isEnding = true
      // A little less, so that it ends by itself.
      if (isServing) void worker?.channel.call('drain', undefined, time * 0.95)
      else worker?.kill()
      const late = setTimeout(() => worker?.kill(), time)
      await worker?.ended
      clearTimeout(late)
    },
    kill() {
      isEnding = true
      worker?.kill()
    },
  }
}

/** Milliseconds: the first wait, the longest, and how long a worker has to have served for the first one again. */
const minDelayMs = 100
const maxDelayMs = 10_000
const stableAfterMs = 30_000

export function nextDelay(before: number, served: number): number {
  if (before === 0 || served >= stableAfterMs) return minDelayMs
  return Math.min(before * 2, maxDelayMs)
}

function describeExit({ code, signal, reason }: ExitStatus = {}): string {
  return `(${reason ?? signal ?? `exit code ${code}`})`
}
