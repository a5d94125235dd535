// The types of contenders and of their rows.
import type { Running } from '../test/support/processes.ts'
import type { Services } from '../test/support/stores.ts'
import type { Callers } from './contenders/callers.ts'

export interface Stage {
  readonly upstream: Running
  readonly services: Services | undefined
  /** The peers accept the tokens of this gateway. */
  readonly gateway: Gateway
}

export interface Gateway {
  readonly running: Running
  readonly callers: Callers
  /** The URL of its database; empty for the embedded database. */
  readonly database: string
}

export interface Contender {
  /** The names of its rows. */
  readonly rows: readonly string[]
  /** Returns the reason why it cannot run on this machine, if any. */
  absence?(stage: Stage): string | undefined
  start(stage: Stage): Promise<readonly Row[]>
}

export interface Question {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** One kind of request to one contender. */
export interface Row {
  readonly name: string
  readonly running: Running
  /** The request that is checked and sent. */
  readonly question: Question
  /** Requests of other users. The connections send all requests in turn. */
  readonly others?: readonly Question[]
  /** The expected status code. */
  readonly status: number
  /** The number of processes that share the load; 1 by default. Each gets the fixed rate. */
  readonly workers?: number
  /** The number of connections; by default the setting of the run. A row with this number has no fixed rate. */
  readonly connections?: number
  /** Whether a round counts only if this row could fill a core. */
  readonly fillsItsCore: boolean
  readonly checks: readonly Check[]
  readonly version?: string
}

export interface Check {
  readonly title: string
  findFault(row: Row): Promise<string | undefined>
}

/** The host of every request. A proxy may route by it. */
export const host = 'service.example'

/** The length of the upstream's body in bytes. */
export const bodyLength = 1024

export function coursePath(prefix: string): string {
  return `/${prefix}/courses/42?page=3`
}

/** The path at which the upstream returns the received headers. */
export function echoPath(prefix: string): string {
  return `/${prefix}/courses/echo`
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}
