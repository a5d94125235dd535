// What is said to clients goes out once all that has arrived by now is read. Each write may have to wake its reader, who
// sleeps again by the next; many in a row wake everybody once: up to a third of what a short answer costs.
import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

/** What waits to be sent. */
export interface DeferredWrite {
  send(): void
}

let queue: DeferredWrite[] = []

/** In nobody's context: what is sent is of many requests, and the next request may begin with it. */
const flushAfterPoll = AsyncResource.bind(flushDeferred)

/** Calls `send` behind the poll in which the event loop is; before, where somebody cannot wait (`sendHeld`). */
export function defer(write: DeferredWrite): void {
  if (queue.length === 0) setImmediate(flushAfterPoll)
  queue.push(write)
}

/**
 * At once: to be called before a connection is ended for what came behind a request, so that the answer to that is
 * still heard.
 */
export function flushDeferred(): void {
  const writes = queue
  queue = []
  for (const write of writes) write.send()
}

/** Ends the response behind the poll. @param body latin1 */
export function endDeferred(response: ServerResponse, body: string): void {
  defer(new DeferredEnd(response, body))
}

class DeferredEnd implements DeferredWrite {
  readonly #response: ServerResponse
  readonly #body: string

  constructor(response: ServerResponse, body: string) {
    this.#response = response
    this.#body = body
  }

  send(): void {
    this.#response.end(this.#body, 'latin1')
  }
}
