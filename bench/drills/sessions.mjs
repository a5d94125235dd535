// Clients that sign in, call and refresh at replicas at random, and say when they were refused with a token that was good.
import { setTimeout as sleep } from 'node:timers/promises'
import { random } from './settings.mjs'
import { ask, newPro, post } from './subjects.mjs'

/** Milliseconds that a token must still be good for, to be shown: it must not expire on the way. */
const margin = 1_000

/**
 * @param {{ port: number }[]} replicas
 * @param {{ count: number, database: import('pg').Pool, onNewKey: (kid: string) => Promise<void> }} options
 *   told of each key of which a token is seen for the first time
 */
export async function startSessions(replicas, { count, database, onNewKey }) {
  const seen = { calls: 0, refreshes: 0, logins: 0, wrong: [], failures: [], kids: new Set() }
  const somewhere = () => replicas[Math.floor(random() * replicas.length)].port
  let isPaused = false

  const names = Array.from({ length: count }, (_, i) => `session-${i}`)
  for (const name of names) await newPro(replicas[0].port, database, name)

  async function note(token) {
    const { kid } = read(token)
    if (seen.kids.has(kid)) return
    seen.kids.add(kid)
    await onNewKey(kid)
  }

  /** @param {string} what @param {number} status @param {string} token that was presented */
  function judge(what, status, token) {
    if (status === 200) return true
    const { kid, expiresAt } = read(token)
    if (status !== 401) seen.failures.push(`${what} ${status}`)
    else if (Date.now() < expiresAt) seen.wrong.push(`${what} with a token of ${kid}`)
    return false
  }

  async function login(name) {
    const account = { email: `${name}@drill.test`, password: 'correct horse battery' }
    const { status, body } = await post(somewhere(), 'login', account)
    seen.logins += 1
    if (status === 200) return accept(body)
    seen.failures.push(`login ${status}`)
    return undefined
  }

  async function refresh(pair) {
    const { status, body } = await post(somewhere(), 'refresh', { refresh_token: pair.refresh })
    seen.refreshes += 1
    return judge('refresh', status, pair.refresh) ? accept(body) : undefined
  }

  async function accept({ access_token: access, refresh_token: refreshToken }) {
    await Promise.all([note(access), note(refreshToken)])
    return { access, refresh: refreshToken }
  }

  async function call({ access }) {
    const { status } = await ask(somewhere(), { authorization: `Bearer ${access}` })
    seen.calls += 1
    judge('call', status, access)
  }

  async function live(name) {
    let pair
    while (!isPaused) {
      if (pair === undefined || !isFresh(pair.refresh)) pair = await login(name)
      else if (!isFresh(pair.access) || random() < 0.05) pair = await refresh(pair)
      if (pair !== undefined && isFresh(pair.access)) await call(pair)
      // Some stay away for so long that they come back with an old key's token, or must sign in again.
      await sleep(random() < 0.01 ? random() * 14_000 : random() * 100)
    }
  }

  const clients = names.map(live)
  const pause = async () => {
    isPaused = true
    await Promise.all(clients)
  }
  return {
    /** Ends them all. */
    pause,
    /** An access token of now. */
    newToken: async () => (await login(names[0]))?.access ?? '',
    async stop() {
      await pause()
      return seen
    },
  }
}

function isFresh(token) {
  return Date.now() + margin < read(token).expiresAt
}

/** @param {string} token a JWT */
export function read(token) {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map(part => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return { kid: header.kid, expiresAt: claims.exp * 1_000 }
}
