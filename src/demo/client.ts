// Sends the demo's requests and prints each with its answer.
import type { Printer } from './printer.ts'

export interface Answer {
  status: number
  body: Record<string, unknown>
}

export interface Sending {
  method: string
  /** Absolute. */
  url: string
  token?: string
  body?: object
  /** The status that is due. */
  due: number
}

export interface DemoClient {
  send(title: string, sending: Sending): Promise<Answer>
  /** Whether every answer so far was the one that was due. */
  readonly allAsDue: boolean
}

export function createDemoClient(printer: Printer): DemoClient {
  let allAsDue = true
  return {
    get allAsDue() {
      return allAsDue
    },
    async send(title, { method, url, token, body, due }) {
      const response = await fetch(url, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const answer = (await response.json()) as Record<string, unknown>
      const asDue = response.status === due
      allAsDue &&= asDue
      printer.exchange({
        title,
        method,
        url,
        body,
        status: response.status,
        answer,
        due: asDue ? undefined : due,
      })
      return { status: response.status, body: answer }
    },
  }
}
