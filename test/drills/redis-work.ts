// Sends requests of free users until all their uses are spent, and then requests that the gateway must refuse. Also
// sends requests of paying users on a route with a rate limit.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer } from './accounts.ts'
import type { Replica } from './replicas.ts'
import { random } from './settings.ts'
import { send } from './subjects.ts'

/** The daily limit. */
export const limit = 5
const freeLanes = 6
const payingLanes = 4
const pauseMs = 40
/** The number of requests that one free user sends at the same time. */
const together = 3

export interface WorkAnswer {
  readonly kind: 'free' | 'paying'
  /** The status code; 0 if the connection failed. */
  readonly status: number
  readonly tookMs: number
}

export interface Work {
  /** Returns the responses since the last call. */
  take(): WorkAnswer[]
  /** Returns whether some free users have not sent any request yet. */
  isGoing(): boolean
  /**
   * Returns the longest time, in milliseconds, for which this process was blocked. A delay of up to this length can
   * come from this process instead of the gateway.
   */
  ownStall(): number
  stop(): Promise<void>
}

interface WorkTokens {
  /** One token of each user. */
  readonly free: readonly string[]
  readonly paying: readonly string[]
}

export function startWork(replicas: readonly Replica[], { free, paying }: WorkTokens): Work {
  let answers: WorkAnswer[] = []
  let isOver = false
  let [turn, next] = [0, 0]
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()

  async function ask(kind: WorkAnswer['kind'], token = ''): Promise<number> {
    turn += 1
    const at = performance.now()
    const port = replicas[turn % replicas.length]?.port ?? 0
    const { status } = await send(port, 'GET', `/${kind}/1`, bearer(token))
    answers.push({ kind, status, tookMs: performance.now() - at })
    return status
  }

  /**
   * Spends all uses of one user, then all uses of the next user, and so on. In between, sends requests of random users
   * whose turn has started. If the uses of these users are spent, the gateway must refuse the requests.
   */
  async function takeUses(): Promise<void> {
    while (!isOver && next < free.length) {
      const token = free[next]
      next += 1
      for (let isSpent = false; !isSpent && !isOver; ) {
        const statuses = await Promise.all(Array.from({ length: together }, () => ask('free', token)))
        isSpent = statuses.includes(429)
        await ask('free', free[Math.floor(random() * next)])
        await sleep(pauseMs)
      }
    }
  }

  async function pay(lane: number): Promise<void> {
    for (let at = lane; !isOver; at += payingLanes) {
      await ask('paying', paying[at % paying.length])
      await sleep(pauseMs / 2)
    }
  }

  const running = [
    ...Array.from({ length: freeLanes }, takeUses),
    ...Array.from({ length: payingLanes }, (_, lane) => pay(lane)),
  ]
  return {
    take() {
      const taken = answers
      answers = []
      return taken
    },
    isGoing: () => next < free.length,
    ownStall: () => own.max / 1e6,
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}
