// Keeps one worker slot filled. A worker that dies is replaced. If its replacements also die, the delay before each
// start grows.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/sections/schema.ts'
import type { ExitStatus, Fork, WorkerProcess } from './fork.ts'
import type { WorkerApi } from './protocol.ts'
import type { RpcChannel } from './rpc.ts'

export interface WorkerSlot {
  /**
   * Resolves to the address when the first worker listens. From then on, a worker that exits is replaced.
   * @throws Error with the reason if the worker cannot listen
   */
  open(): Promise<string>
  /** Calls the worker. Resolves to `undefined` if no worker is ready. */
  readonly call: RpcChannel<WorkerApi>['call']
  /** Undefined if no worker is ready. */
  pid(): number | undefined
  /** Kills the worker, because it does not respond. Resolves when its replacement is ready. */
  replace(): Promise<void>
  /** Drains the worker, and resolves when it has exited. @param time milliseconds until the worker is killed */
  end(time: number): Promise<void>
  /** Kills the worker immediately and does not replace it. */
  kill(): void
}

interface Options {
  fork: Fork
  config(): Config
  logger: Logger
}

export function createWorkerSlot({ fork, config, logger }: Options): WorkerSlot {
  let worker: WorkerProcess | undefined
  let isServing = false
  let isEnding = false
  let onServing: (() => void)[] = []

  async function start(): Promise<string> {
    const started = fork()
    worker = started
    await started.ready
    let given = config()
    const answer = await started.channel.call('serve', undefined, given)
    let error = answer !== undefined && 'error' in answer ? answer.error : undefined
    // If a reload happened during the start, the worker must also get the new configuration.
    while (answer !== undefined && error === undefined && given !== config()) {
      given = config()
      const prepared = await started.channel.call('prepare', undefined, given)
      const isPrepared = prepared !== undefined && prepared.error === undefined
      const isActive = isPrepared && (await started.channel.call('finish', undefined, 'commit'))
      if (!isActive) error = prepared?.error ?? 'a worker did not activate the new configuration'
    }
    if (answer !== undefined && 'address' in answer && error === undefined) {
      isServing = !isEnding
      for (const resolve of onServing) resolve()
      onServing = []
      return answer.address
    }
    started.kill()
    const ending = await started.ended
    throw new Error(error ?? `a worker exited before it was ready ${describeExit(ending)}`)
  }

  async function supervise(): Promise<void> {
    for (let delay = 0; ; ) {
      const since = performance.now()
      const ending = await worker?.ended
      isServing = false
      if (isEnding) return
      delay = nextDelay(delay, performance.now() - since)
      const facts = { worker: worker?.pid, ...ending, delay_ms: delay }
      logger.error(facts, 'worker exited; starting a replacement')
      await sleep(delay, undefined, { ref: false })
      while (!isEnding && !(await startAnother())) {
        delay = nextDelay(delay, 0)
        await sleep(delay, undefined, { ref: false })
      }
      if (isEnding) return
    }
  }

  async function startAnother(): Promise<boolean> {
    try {
      await start()
      logger.info({ worker: worker?.pid }, 'replacement worker is ready')
      return true
    } catch (error) {
      if (!isEnding) logger.error({ err: error }, 'replacement worker failed to start; trying again')
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
    replace() {
      const replaced = new Promise<void>(resolve => onServing.push(resolve))
      isServing = false
      worker?.kill()
      return replaced
    },
    async end(time) {
      isEnding = true
      // The worker gets slightly less time, so that it exits by itself before it is killed.
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

/**
 * The minimum and maximum delay before a worker is replaced. If a worker was ready for `stableAfterMs`, the delay after
 * its exit is the minimum again.
 */
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
