// Responds to the question of a proxy (docs/forward-auth.md) if the guards allow the client's request. The response
// contains the identity of the caller.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission } from '../gate/guards/admission.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { GuardedRoute } from '../gate/routing/decision.ts'
import { endDeferred } from '../http/deferred-writes.ts'
import { lingeringClose } from '../http/lingering-close.ts'
import { isLastResponse } from '../http/node-internals.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import { wholeIdentity } from './identity-headers.ts'

/** The question of a proxy about a request that the guards have allowed. RequestContext implements this interface. */
interface AllowedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  decision: string | undefined
  gatewayHeaders(): string[]
  refuse(thrown: unknown): void
}

/** Sends a 200. Requires an `Admission`, which only the guards create, after they have counted the use. */
export type AnswerQuestion = (context: AllowedRequest, route: GuardedRoute, admission: Admission) => void

export function createAnswerQuestion(assertions: Assertions): AnswerQuestion {
  return (context, route, { identity }) => {
    const { upstreamName } = route
    if (!route.identity_assertion || identity.kind !== 'user' || upstreamName === undefined) {
      allow(context, wholeIdentity(route, identity))
      return
    }
    assertions.tokenFor(identity, upstreamName).then(
      assertion => allow(context, wholeIdentity(route, identity, assertion)),
      error => context.refuse(error),
    )
  }
}

function allow(context: AllowedRequest, identity: readonly string[]): void {
  const { request, response, head } = context
  context.decision = 'answered'
  // A proxy that waits for `100 Continue` receives this response instead. The proxy may then send or omit its body, so
  // the connection is not reusable.
  const last = head.expectsContinue ? ['connection', 'close'] : []
  lingeringClose(request, response, head.expectsContinue || isLastResponse(response))
  const fields = [...identity, ...context.gatewayHeaders(), ...last, 'cache-control', 'no-store']
  response.writeHead(200, [...fields, 'content-length', '0'])
  endDeferred(response, '')
}
