// Defers response writes until this event-loop poll has read every ready socket. A write may have to wake its reader,
// which sleeps again before the next; writes in a row wake readers once: up to a third of a short response's cost.
import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

export interface DeferredWrite {
  send(): void
}

let queue: DeferredWrite[] = []

/** Bound to the module's async context: one flush serves many requests, and the next request may start inside it. */
const flushAfterPoll = AsyncResource.bind(flushDeferred)

/** Calls `send` after the current event-loop poll, or earlier if `flushDeferred` is called. */
export function defer(write: DeferredWrite): void {
  if (queue.length === 0) setImmediate(flushAfterPoll)
  queue.push(write)
}

/**
 * Sends everything now. Call it before ending a connection because of bytes that follow a request, so that the
 * request's response is still delivered.
 */
export function flushDeferred(): void {
  const writes = queue
  queue = []
  for (const write of writes) write.send()
}

/** Ends the response after the current event-loop poll. @param body latin1 */
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
