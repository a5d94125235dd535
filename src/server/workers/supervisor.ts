// A place among the workers, held by one after another: whoever dies is replaced, later and later where that goes on.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { PackedConfig } from '../../config/reading/packed-config.ts'
import type { Ending, Launch, Launched } from './fork.ts'
import type { AskedOfWorker } from './protocol.ts'
import type { Line } from './rpc.ts'

export interface Post {
  /**
   * Resolves when the first worker listens, to where; from then on the place is kept held.
   * @throws Error with what kept it from listening
   */
  open(): Promise<string>
  /** Of the worker; nothing where none serves. */
  readonly ask: Line<AskedOfWorker>['ask']
  /** Nothing where none serves. */
  pid(): number | undefined
  /** Has the worker drain, and resolves when it has ended. @param time milliseconds until it is killed */
  end(time: number): Promise<void>
  /** Ends the worker at once. */
  kill(): void
}

interface Parts {
  launch: Launch
  /** What is to be served with at the moment. */
  config(): PackedConfig
  logger: Logger
}

export function createPost({ launch, config, logger }: Parts): Post {
  let holder: Launched | undefined
  let isServing = false
  let isEnding = false

  async function staff(): Promise<string> {
    const worker = launch()
    holder = worker
    await worker.hears
    let given = config()
    const answer = await worker.line.ask('serve', undefined, given)
    let fault = answer !== undefined && 'fault' in answer ? answer.fault : undefined
    // What was reloaded while it started is not in what it was given.
    while (answer !== undefined && fault === undefined && given !== config()) {
      given = config()
      fault = (await worker.line.ask('prepare', undefined, given))?.fault
      await worker.line.ask('settle', undefined, 'take')
    }
    if (answer !== undefined && 'address' in answer && fault === undefined) {
      isServing = !isEnding
      return answer.address
    }
    worker.kill()
    const ending = await worker.ended
    throw new Error(fault ?? `a worker ended ${manner(ending)} before it listened`)
  }

  async function keep(): Promise<void> {
    for (let delay = 0; ; ) {
      const since = performance.now()
      const ending = await holder?.ended
      isServing = false
      if (isEnding) return
      delay = nextDelay(delay, performance.now() - since)
      const facts = { worker: holder?.pid, ...ending, delay_ms: delay }
      logger.error(facts, `a worker ended ${manner(ending)} and is replaced`)
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
      await staff()
      logger.info({ worker: holder?.pid }, 'a worker serves in its place')
      return true
    } catch (error) {
      if (!isEnding) logger.error({ err: error }, 'a worker could not be replaced')
      return false
    }
  }

  return {
    async open() {
      const address = await staff()
      void keep()
      return address
    },
    ask: (...question) =>
      isServing && holder !== undefined ? holder.line.ask(...question) : Promise.resolve(undefined),
    pid: () => (isServing ? holder?.pid : undefined),
    async end(time) {
      isEnding = true
      // A little less, so that it ends by itself.
      if (isServing) void holder?.line.ask('drain', undefined, time * 0.95)
      else holder?.kill()
      const late = setTimeout(() => holder?.kill(), time)
      await holder?.ended
      clearTimeout(late)
    },
    kill() {
      isEnding = true
      holder?.kill()
    },
  }
}

/** Milliseconds: the first wait, the longest, and how long a worker has to have served for the first one again. */
const shortest = 100
const longest = 10_000
const settled = 30_000

export function nextDelay(before: number, served: number): number {
  if (before === 0 || served >= settled) return shortest
  return Math.min(before * 2, longest)
}

function manner({ code, signal, reason }: Ending = {}): string {
  return `(${reason ?? signal ?? `exit code ${code}`})`
}
