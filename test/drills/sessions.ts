// Clients that log in, send requests and refresh tokens at random replicas. They record each refusal of a token that
// has not expired.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'
import { kidOf } from '../support/key-load.ts'
import { claimsOf } from '../support/sessions.ts'
import { bearer, pairOf, type TokenPair } from './accounts.ts'
import { random } from './settings.ts'
import { ask, type JsonAnswer, newPro, post } from './subjects.ts'

/**
 * The number of milliseconds before the expiry of a token at which clients stop using it. Otherwise, the token might
 * expire while the request is in flight.
 */
const margin = 1_000

export interface Seen {
  calls: number
  refreshes: number
  logins: number
  /** The refusals of tokens that had not expired. */
  readonly wrong: string[]
  /** All other responses with a status code other than 200. */
  readonly failures: string[]
  /** The IDs of the keys that signed the tokens. */
  readonly kids: Set<string>
}

export interface Sessions {
  /** Stops all clients. */
  pause(): Promise<void>
  /** Logs in and returns an access token. */
  newToken(): Promise<string>
  stop(): Promise<Seen>
}

interface SessionOptions {
  readonly count: number
  readonly database: Pool
  /** Called when a client gets the first token that a new key has signed. */
  readonly onNewKey: (kid: string) => Promise<void>
}

/** @param replicas the replicas; a drill may replace entries of the array while the clients run */
export async function startSessions(
  replicas: readonly { readonly port: number }[],
  { count, database, onNewKey }: SessionOptions,
): Promise<Sessions> {
  const seen: Seen = { calls: 0, refreshes: 0, logins: 0, wrong: [], failures: [], kids: new Set() }
  const somewhere = () => replicas[Math.floor(random() * replicas.length)]?.port ?? 0
  let isPaused = false

  const names = Array.from({ length: count }, (_, i) => `session-${i}`)
  for (const name of names) await newPro(somewhere(), database, name)

  async function note(token: string): Promise<void> {
    const kid = kidOf(token)
    if (seen.kids.has(kid)) return
    seen.kids.add(kid)
    await onNewKey(kid)
  }

  /**
   * Records a failed request, except a 401 for an expired token.
   * @param token the token of the request
   * @returns whether the status code is 200
   */
  function judge(what: string, status: number, token: string): boolean {
    if (status === 200) return true
    if (status !== 401) seen.failures.push(`${what} ${status}`)
    else if (Date.now() < expiryOf(token)) seen.wrong.push(`${what} with a token of ${kidOf(token)}`)
    return false
  }

  async function login(name = ''): Promise<TokenPair | undefined> {
    const answer = await post(somewhere(), 'login', { email: `${name}@drill.test`, password })
    seen.logins += 1
    if (answer.status === 200) return accept(answer)
    seen.failures.push(`login ${answer.status}`)
    return undefined
  }

  async function refresh(pair: TokenPair): Promise<TokenPair | undefined> {
    const answer = await post(somewhere(), 'refresh', { refresh_token: pair.refresh })
    seen.refreshes += 1
    return judge('refresh', answer.status, pair.refresh) ? accept(answer) : undefined
  }

  async function accept(answer: JsonAnswer): Promise<TokenPair> {
    const pair = pairOf(answer)
    await Promise.all([note(pair.access), note(pair.refresh)])
    return pair
  }

  async function call({ access }: TokenPair): Promise<void> {
    const { status } = await ask(somewhere(), bearer(access))
    seen.calls += 1
    judge('call', status, access)
  }

  async function live(name: string): Promise<void> {
    let pair: TokenPair | undefined
    while (!isPaused) {
      if (pair === undefined || !isFresh(pair.refresh)) pair = await login(name)
      else if (!isFresh(pair.access) || random() < 0.05) pair = await refresh(pair)
      if (pair !== undefined && isFresh(pair.access)) await call(pair)
      // One in a hundred pauses is long. After a long pause, the token may have expired, or an old key may have signed
      // it.
      await sleep(random() < 0.01 ? random() * 14_000 : random() * 100)
    }
  }

  const clients = names.map(live)
  const pause = async () => {
    isPaused = true
    await Promise.all(clients)
  }
  return {
    pause,
    newToken: async () => (await login(names[0]))?.access ?? '',
    async stop() {
      await pause()
      return seen
    },
  }
}

function isFresh(token: string): boolean {
  return Date.now() + margin < expiryOf(token)
}

/** @param token a JWT @returns its expiry in milliseconds since the epoch */
export function expiryOf(token: string): number {
  return Number(claimsOf(token).exp) * 1_000
}
