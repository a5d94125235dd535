// What takes part: contenders, the rows of each contender, and what contenders need.
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
  /** Its URL; empty if the gateway is embedded. */
  readonly database: string
}

export interface Contender {
  /** The names of its rows. */
  readonly rows: readonly string[]
  /** Returns why it cannot take part on this machine. */
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
  /** Requests of other users, sent in turns by connection. */
  readonly others?: readonly Question[]
  /** Of the right response. */
  readonly status: number
  /** How many processes share the load: each gets the fixed rate. Omitted: one. */
  readonly workers?: number
  /** Omitted: those of the run. A row with its own connections gets no load at the fixed rate. */
  readonly connections?: number
  /** Whether a round counts only if this row had a core to itself. */
  readonly fillsItsCore: boolean
  readonly checks: readonly Check[]
  readonly version?: string
}

export interface Check {
  readonly title: string
  findFault(row: Row): Promise<string | undefined>
}

/** The host of every request, in checks and in rounds: a proxy may route by it. */
export const host = 'service.example'

/** Bytes of the upstream's response. */
export const bodyLength = 1024

export function coursePath(prefix: string): string {
  return `/${prefix}/courses/42?page=3`
}

/** The path at which the upstream returns the header fields that it received. */
export function echoPath(prefix: string): string {
  return `/${prefix}/courses/echo`
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}
