// Serves one request as a running gateway does, but for the network: the same gate, the same order, the same refusals.
import type { IncomingMessage } from 'node:http'
import type { OwnEndpoints } from '../endpoints/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import type { Arrival } from '../gate/parsing/request-head.ts'
import { type OnRefusal, sayNo } from '../http/error-handlers.ts'
import type { Pass } from '../proxy/forward-request.ts'
import { createServeRoute } from '../proxy/handle-request.ts'
import { answerFields, beginPassage } from '../proxy/request-context.ts'
import type { Refusal } from '../refusals/refusal.ts'
import { answerTo, type FieldList, type Head } from './stub-request.ts'
import type { Dispatched } from './upstreams.ts'

interface Parts {
  gate: Gate
  pass: Pass
  own: OwnEndpoints
  request: IncomingMessage
  arrival: Arrival
  /** The same with more fields, to see what becomes of them on the way to the upstream. */
  tried: IncomingMessage
  /** What the upstream answers. */
  answer: FieldList
  /** Calls back with what is dispatched to an upstream. */
  onDispatch(listener: (dispatched: Dispatched) => void): void
}

/** What came of it; neither refusal nor dispatch where an endpoint of the gateway's own would answer. */
export interface Served {
  readonly refusal?: Refusal
  readonly dispatched?: { readonly asked: Dispatched; readonly tried: Dispatched }
  /** What the client would be answered, as far as the gateway has a say in it. */
  readonly head?: Head
}

export function serve(parts: Parts): Promise<Served> {
  const { gate, pass, own, request, arrival, tried, answer } = parts
  return new Promise((resolve, reject) => {
    let served: Served = {}
    const response = answerTo(request, head => resolve({ ...served, head }))
    const onRefusal: OnRefusal = (_, refusal) => {
      // A fault is ours, and no explanation.
      if (refusal.code === 'internal') reject(refusal.cause)
      served = { refusal }
      return answerFields(passage)
    }
    let first: Dispatched | undefined
    parts.onDispatch(dispatched => {
      if (first === undefined) {
        first = dispatched
        return
      }
      served = { dispatched: { asked: dispatched, tried: first } }
      const raw = answer.flat().map(text => Buffer.from(text, 'latin1'))
      dispatched.handler.onHeaders?.(200, raw, () => {}, 'OK')
      dispatched.handler.onComplete?.(null)
    })
    const passage = beginPassage(request, arrival, undefined, performance.now())
    const { door } = arrival
    if (door.kind === 'refused') sayNo(response, door.refusal, onRefusal)
    else if (door.kind === 'route') {
      const passBoth: Pass = passing => {
        pass({ ...passing, request: tried })
        pass(passing)
      }
      createServeRoute(onRefusal)({ guards: gate.guards, pass: passBoth }, passage, door, response)
    } else if (door.kind === 'own') {
      ownGuards(gate, own, request.method ?? '', arrival, door.path)
        .then(() => resolve({}))
        .catch(thrown => sayNo(response, thrown, onRefusal))
    } else reject(new Error('a preflight, which no question is'))
  })
}

/** A GET answers HEAD too. */
async function ownGuards(
  gate: Gate,
  { user, upgrade }: OwnEndpoints,
  method: string,
  arrival: Arrival,
  path: string,
): Promise<void> {
  const answers = (declared: string) => declared === method || (declared === 'GET' && method === 'HEAD')
  const guarded = [...user, ...upgrade].find(
    ({ operation }) => operation.path === path && answers(operation.method),
  )
  if (guarded !== undefined) await gate.ownGuards(arrival, guarded.plans)
}
