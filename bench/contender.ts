// Defines the types of contenders and rows. A contender is a program whose cost is measured. A row is one kind of
// request to one contender.
import type { Running } from '../test/support/processes.ts'
import type { Services } from '../test/support/stores.ts'
import type { Callers } from './contenders/callers.ts'

export interface Stage {
  readonly upstream: Running
  readonly services: Services | undefined
  /** The gateway that issues the access tokens. The peers accept these tokens too. */
  readonly gateway: Gateway
}

export interface Gateway {
  readonly running: Running
  readonly callers: Callers
  /** The URL of the gateway's database; empty for the embedded database. */
  readonly database: string
}

export interface Contender {
  /** The names of the contender's rows. */
  readonly rows: readonly string[]
  /** Returns why the contender cannot run on this machine, or `undefined` if it can. */
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
  /** The request that the checks and the load generator send. */
  readonly question: Question
  /** The same request from other users. Each connection repeats either `question` or one of these requests. */
  readonly others?: readonly Question[]
  /** The expected status code. */
  readonly status: number
  /** The expected body length of a 200 response in bytes. The default is the body length of the upstream. */
  readonly length?: number
  /** The number of worker processes; 1 by default. In the load at the fixed rate, each process gets the full rate. */
  readonly workers?: number
  /**
   * The number of connections. The default is the value of the flag `--connections`. If a row sets another number, it
   * is not measured at the fixed rate.
   */
  readonly connections?: number
  /** Whether this row should keep a CPU core busy. A round in which such a row uses too little CPU does not count. */
  readonly fillsItsCore: boolean
  readonly checks: readonly Check[]
  readonly version?: string
}

export interface Check {
  readonly title: string
  findFault(row: Row): Promise<string | undefined>
}

/** The value of the header `Host` in every request. Some proxies select a route by this name. */
export const host = 'service.example'

/** The length of the upstream's response body in bytes. */
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
