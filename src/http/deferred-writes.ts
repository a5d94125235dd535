// Defers response writes until the current event-loop poll has read every ready socket. A write may have to wake a
// sleeping reader. Consecutive writes wake it once, which saves up to a third of the cost of a short response.
import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

export interface DeferredWrite {
  send(): void
}

let queue: DeferredWrite[] = []

/**
 * Bound to the async context of the module, because one flush serves many requests. The next request may start inside
 * it.
 */
const flushAfterPoll = AsyncResource.bind(flushDeferred)

/** Calls `send` after the current event-loop poll, or earlier if `flushDeferred` is called. */
export function defer(write: DeferredWrite): void {
  if (queue.length === 0) setImmediate(flushAfterPoll)
  queue.push(write)
}

/**
 * Sends all deferred writes now. Call this before ending a connection because of bytes after a request. Otherwise the
 * response to that request would be lost.
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
