// Relays in front of a server. Each is a process of its own, so that a busy drill does not slow what passes through it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/cleanup.ts'

export interface Relay {
  readonly child: ChildProcess
  /** The server's URL, through the relay. */
  readonly url: string
  stop(): Promise<void>
}

/**
 * @param name the program is `serve-NAME-relay.ts`
 * @param target a server's URL
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
  /** From now on nothing passes, either way. */
  stall(): void
  /** Passes on what was held back, and everything from then on. */
  flow(): void
  stop(): Promise<void>
}

export async function startStallingRelay(target: string): Promise<StallableRelay> {
  const { child, url, stop } = await startRelay('stalling', target)
  return { url, stall: () => child.send('stall'), flow: () => child.send('flow'), stop }
}

/** What has passed to Postgres since the relay started. */
export interface Counts {
  /** By their text. */
  readonly statements: Readonly<Record<string, number>>
  readonly lookUps: number
  /** The most look-ups of one user that were under way at once. */
  readonly mostOfOne: number
}

export interface CountingRelay {
  readonly url: string
  counts(): Promise<Counts>
  stop(): Promise<void>
}

/** @param target a Postgres server's URL */
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
