// Defers response writes until the current event-loop poll has read every ready socket. A write may have to wake the
// receiving process. Several writes without a pause wake the process only once, which saves up to a third of the cost
// of a short response.
import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

export interface DeferredWrite {
  send(): void
}

let queue: DeferredWrite[] = []

/**
 * One flush serves many requests, and the next request may start inside the flush. So the flush runs in the async
 * context of this module, not of the first request.
 */
const flushAfterPoll = AsyncResource.bind(flushDeferred)

/** Calls `send` after the current event-loop poll, or earlier if `flushDeferred` is called. */
export function defer(write: DeferredWrite): void {
  if (queue.length === 0) setImmediate(flushAfterPoll)
  queue.push(write)
}

/**
 * Sends all deferred writes now. If the bytes after a request are a reason to end the connection, call this first.
 * Otherwise the response to that request is lost.
 */
export function flushDeferred(): void {
  const writes = queue
  queue = []
  for (const write of writes) write.send()
}

/** Ends the response after the current event-loop poll. @param body the body, as text in latin1 */
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
