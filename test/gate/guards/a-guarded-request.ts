// Builds requests as guards receive them, and reads the decisions of a chain of guards.
import type { ChainResult } from '../../../src/gate/guards/chain.ts'
import { parseRequestHead } from '../../../src/gate/parsing/request-head.ts'
import { createTrustedProxies } from '../../../src/http/client-address.ts'
import { anonymous, type Identity } from '../../../src/identity/identity.ts'
import { Refusal } from '../../../src/refusals/refusal.ts'
import type { Reservation } from '../../../src/upstream/reservation.ts'
import type { UserWithEpoch } from '../../../src/users/user-store.ts'
import { aRequest } from '../a-request.ts'

type Decision = ChainResult<{ allowed: true; identity: Identity }>

export function guardedRequest(headers: Record<string, string> = {}, peer = '192.0.2.1') {
  const traced: unknown[] = []
  const added: Readonly<Record<string, string>>[] = []
  return {
    head: parseRequestHead(
      aRequest([['Host', 'gw.test'], ...Object.entries(headers)], { peer }),
      createTrustedProxies([]),
    ),
    trace: {
      onGuard: (name: string | undefined) => traced.push(name),
      onGuardFailed: (failure: string) => traced.push(failure),
    },
    identity: anonymous as Identity,
    isGone: () => false,
    reserveConnection(): Reservation | Promise<Reservation> {
      throw new Error('no connection may be reserved')
    },
    addHeaders: (headers: Readonly<Record<string, string>>) => added.push(headers),
    traced,
    added,
  }
}

export function userIdentity(record: Partial<UserWithEpoch> = {}): Identity & { kind: 'user' } {
  const user = {
    ...{ id: 1, email: 'a@example.com', plan: 'free' as const, is_active: 1 as const, daily_usage: 0 },
    ...{ last_usage_date: null, created_at: new Date(0), email_verified_at: null, session_epoch: 0 },
    ...record,
  }
  return { kind: 'user', user, sessionId: undefined, apiKey: undefined }
}

/**
 * Returns a description of a decision: the identity, or the status and the code of the refusal. If the guard failed
 * with another error, returns this error unchanged.
 */
export function told(decision: Decision): unknown {
  if (decision.allowed) {
    const { identity } = decision
    return identity.kind === 'anonymous'
      ? 'anonymous'
      : `${identity.apiKey?.id ?? 'access_token'} of ${identity.user.id}`
  }
  const { thrown } = decision
  return thrown instanceof Refusal ? `${thrown.status} ${thrown.code}` : thrown
}

/**
 * Returns the value of the header `name` of a refusal. Returns undefined if the request was allowed, or if the header
 * is missing.
 */
export function fieldOf(decision: Decision, name: string): string | undefined {
  if (decision.allowed || !(decision.thrown instanceof Refusal)) return undefined
  const { fields } = decision.thrown.response('fr')
  const at = fields.findIndex((field, index) => index % 2 === 0 && field === name)
  return at === -1 ? undefined : fields[at + 1]
}

export function bodyOf(decision: Decision): unknown {
  if (decision.allowed || !(decision.thrown instanceof Refusal)) return undefined
  return JSON.parse(Buffer.from(decision.thrown.response('fr').body, 'latin1').toString())
}
