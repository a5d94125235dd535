// The types of contenders and rows. A contender is a program to measure, and a row is one kind of request to it.
import type { Running } from '../test/support/processes.ts'
import type { Services } from '../test/support/stores.ts'
import type { Callers } from './contenders/callers.ts'

export interface Stage {
  readonly upstream: Running
  readonly services: Services | undefined
  /** A running gateway, whose access tokens the peers accept. */
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
  /** The request for the checks and for the load. */
  readonly question: Question
  /** The same request from other users. Each connection repeats one request, either `question` or one of `others`. */
  readonly others?: readonly Question[]
  /** The expected status code. */
  readonly status: number
  /** The expected length of the body of a 200. By default, it is the length of the upstream's body. */
  readonly length?: number
  /** The number of processes that share the load; 1 by default. Each process gets the full fixed rate. */
  readonly workers?: number
  /**
   * The number of connections. If it is absent, the connections of the whole run apply. If it is set, the row is not
   * measured at the fixed rate.
   */
  readonly connections?: number
  /** Whether this row should keep a core busy. If the row should and does not, the round does not count. */
  readonly fillsItsCore: boolean
  readonly checks: readonly Check[]
  readonly version?: string
}

export interface Check {
  readonly title: string
  findFault(row: Row): Promise<string | undefined>
}

/** The host name of every request. A proxy may route requests by host name. */
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
