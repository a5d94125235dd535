// Starts relays in front of a server. Each relay is a separate process, so that a busy drill does not slow down the
// relay.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/cleanup.ts'

export interface Relay {
  readonly child: ChildProcess
  /** The URL at which clients reach the server through the relay. */
  readonly url: string
  stop(): Promise<void>
}

/**
 * @param name the program to start: `serve-NAME-relay.ts`
 * @param target the URL of the server behind the relay
 */
export async function startRelay(name: 'moving' | 'stalling' | 'counting', target: string): Promise<Relay> {
  const child = fork(fileURLToPath(new URL(`./serve-${name}-relay.js`, import.meta.url)), [target])
  const stop = atEnd(() => child.kill('SIGKILL'))
  const [port] = await once(child, 'message')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return { child, url: url.href, stop }
}

export interface StallableRelay {
  readonly url: string
  /** Makes the relay hold back the bytes of both directions. */
  stall(): void
  /** Ends the stall. The relay then passes on the bytes that it held back, and all later bytes. */
  flow(): void
  stop(): Promise<void>
}

export async function startStallingRelay(target: string): Promise<StallableRelay> {
  const { child, url, stop } = await startRelay('stalling', target)
  return { url, stall: () => child.send('stall'), flow: () => child.send('flow'), stop }
}

/** Counts of the statements that clients have sent to Postgres since the relay started. */
export interface Counts {
  /** Maps the text of each statement to the number of its executions. */
  readonly statements: Readonly<Record<string, number>>
  readonly lookUps: number
  /** The highest number of lookups of one user that ran at the same time. */
  readonly mostOfOne: number
}

export interface CountingRelay {
  readonly url: string
  counts(): Promise<Counts>
  stop(): Promise<void>
}

/** @param target the URL of a Postgres server */
export async function startCountingRelay(target: string): Promise<CountingRelay> {
  const { child, url, stop } = await startRelay('counting', target)
  return {
    url,
    async counts() {
      child.send('counts')
      return (await once(child, 'message'))[0]
    },
    stop,
  }
}
