// The gateway's own endpoints that sit behind guards: what one is, what it is given, and how it answers.

import type { JsonObject } from '../http/json-body.ts'
import type { Operation, Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export interface OwnPath {
  readonly path: string
  /** As `Allow` lists them. */
  readonly methods: readonly string[]
  /** It gives way to a route that is declared at the very path. */
  readonly isReplaceable?: boolean
}

export interface GuardedEndpoint {
  /** A GET answers HEAD too. */
  readonly operation: Operation
  /** Whom the plan guard lets through; undefined: every plan. */
  readonly plans: readonly Plan[] | undefined
  answer(call: GuardedCall): Promise<GuardedReply>
}

/** What the guards of every one of them, and the reading of its body, may refuse. */
export const guardRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}

/** Made when the guards have let it through. */
export interface GuardedCall {
  /** As the record says now. */
  readonly user: User
  readonly body: JsonObject
}

export interface GuardedReply {
  readonly status: number
  /** Lower-case names, beside those that every answer carries. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; absent: an answer without content. */
  readonly body?: object
}

/** Their paths, each once with all of its methods. */
export function pathsOf(endpoints: readonly GuardedEndpoint[]): OwnPath[] {
  const methods = new Map<string, string[]>()
  for (const {
    operation: { path, method },
  } of endpoints) {
    const own = methods.get(path) ?? []
    methods.set(path, [...own, ...(method === 'GET' ? ['GET', 'HEAD'] : [method])])
  }
  return [...methods].map(([path, allowed]) => ({ path, methods: allowed }))
}
