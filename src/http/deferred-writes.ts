// What is said to clients goes out once all that has arrived by now is read. Each write may have to wake its reader, who
// sleeps again by the next; many in a row wake everybody once: up to a third of what a short answer costs.
import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'

/** What waits to be sent. */
export interface Held {
  send(): void
}

let waiting: Held[] = []

/** In nobody's context: what is sent is of many requests, and the next request may begin with it. */
const sendBehindPoll = AsyncResource.bind(sendHeld)

/** Calls `send` behind the poll in which the event loop is; before, where somebody cannot wait (`sendHeld`). */
export function hold(held: Held): void {
  if (waiting.length === 0) setImmediate(sendBehindPoll)
  waiting.push(held)
}

/**
 * At once: to be called before a connection is ended for what came behind a request, so that the answer to that is
 * still heard.
 */
export function sendHeld(): void {
  const held = waiting
  waiting = []
  for (const one of held) one.send()
}

/** Ends the response behind the poll. @param body latin1 */
export function endHeld(response: ServerResponse, body: string): void {
  hold(new LastWord(response, body))
}

class LastWord implements Held {
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
