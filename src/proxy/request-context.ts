// What the gateway knows of one request; it grows on the way from the socket to the answer.
import type { IncomingMessage } from 'node:http'
import type { Arrival } from '../gate/parsing/request-head.ts'
import { anonymous, type Identity } from '../identity/identity.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import type { Outcome } from '../upstream/outcome.ts'
import type { RequestSnapshot } from './request-snapshot.ts'

export interface Passage {
  readonly arrival: Arrival
  /** What it was read under, and is served by; nothing where it is only explained. */
  readonly under: RequestSnapshot | undefined
  /** The request target, as the client sent it. */
  readonly url: string
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  identity: Identity
  /** What the answer carries whoever gives it; nothing where there is nothing of the kind. */
  fields: Readonly<Record<string, string>> | undefined
  /** `forwarded`, `answered`, or the code of the refusal; nothing where the client left before one was taken. */
  decision: string | undefined
  /** How a forwarded exchange ended. */
  outcome: Outcome | undefined
  /** Of the last try: the target's origin, and milliseconds to the head of its answer, or to the try's end without one. */
  upstreamTarget: string | undefined
  upstreamDuration: number
  /** Whom an own endpoint has just signed up, in or out. */
  userId: number | undefined
  /** What the connection had been handed when the request's turn began, and since then; where requests are logged. */
  bytesBefore: number
  bytesSent: number
  /** Its spans; nothing where there are no traces. */
  readonly trace: RequestTrace | undefined
}

// On the request itself: a WeakMap with an entry a request costs the garbage collector more than the gate does.
const carried = Symbol('passage')
type Carrying = IncomingMessage & { [carried]?: Passage }

/** @param arrival what the gate read of it @param startedAt `performance.now()` at arrival */
export function beginPassage(
  request: IncomingMessage,
  arrival: Arrival,
  under: RequestSnapshot | undefined,
  startedAt: number,
  trace?: RequestTrace,
): Passage {
  const passage: Passage = {
    arrival,
    under,
    url: request.url ?? '',
    startedAt,
    identity: anonymous,
    fields: arrival.cors,
    decision: undefined,
    outcome: undefined,
    upstreamTarget: undefined,
    upstreamDuration: 0,
    userId: undefined,
    bytesBefore: 0,
    bytesSent: 0,
    trace,
  }
  ;(request as Carrying)[carried] = passage
  return passage
}

export function passageOf(request: IncomingMessage): Passage {
  const passage = (request as Carrying)[carried]
  if (passage === undefined) throw new Error('a request that did not come through the gate')
  return passage
}

/** How what was forwarded ended, once it has: an exchange that outlived the client's connection was left by the client. */
export function outcomeOf({ decision, outcome }: Passage): Outcome | undefined {
  return outcome ?? (decision === 'forwarded' ? 'client_gone' : undefined)
}

export function servedUnder({ under }: Passage): RequestSnapshot {
  if (under === undefined) throw new Error('a request that is only explained')
  return under
}

/** What every answer carries that is not an upstream's, names and values in turn. */
export function answerFields({ arrival, fields }: Passage): string[] {
  const all = ['x-request-id', arrival.requestId]
  for (const name in fields) all.push(name, fields[name] as string)
  return all
}
