// What the peers have in common: they take the gateway's access tokens, and some ask an auth service about each.
import { answersTheUpstreams, refuses, tellsWhoCalls, wantsToken } from '../checks.mjs'
import { bearer, coursePath } from '../contender.mjs'
import { startProgram } from '../processes.mjs'

/**
 * @param {import('../contender.mjs').Stage} stage
 * @returns {Promise<import('../processes.mjs').Running>}
 */
export function startAuthService({ gateway: { running, database } }) {
  return startProgram('contenders/serve-auth.mjs', [`http://127.0.0.1:${running.port}`, database])
}

/** @param {import('../contender.mjs').Stage} stage */
export function lacksPostgres({ services }) {
  return services === undefined ? 'its auth service needs a Postgres, and there is none' : undefined
}

/**
 * A peer's row: the question of the gateway's bearer row.
 * @param {string} name
 * @param {import('../processes.mjs').Running[]} parts the proxy first
 * @param {import('../contender.mjs').Stage} stage
 * @param {{ version: string, looksUsersUp?: boolean }} options
 * @returns {import('../contender.mjs').Row}
 */
export function peerRow(name, parts, { gateway }, { version, looksUsersUp = true }) {
  const { premium, inactive } = gateway.callers
  const path = coursePath('guarded')
  const [proxy] = /** @type {[import('../processes.mjs').Running]} */ (parts)
  const looks = refuses('an inactive user gets 401', { path, headers: bearer(inactive.token) }, 401)
  return {
    name,
    version,
    running: { ...proxy, pids: parts.flatMap(({ pids }) => pids) },
    question: { path, headers: bearer(premium.token) },
    status: 200,
    // It waits for its auth service, or is faster than the load: a share of a core says nothing of the machine.
    fillsItsCore: false,
    checks: [
      answersTheUpstreams,
      ...wantsToken('guarded', premium.token),
      ...(looksUsersUp ? [looks] : []),
      tellsWhoCalls('guarded', bearer(premium.token), premium),
    ],
  }
}

/**
 * The gateway's public key as a file for those who know no JWKS.
 * @param {import('../contender.mjs').Stage} stage
 * @returns {Promise<string>} PEM
 */
export async function publicKey({ gateway: { running } }) {
  const { createPublicKey } = await import('node:crypto')
  const answer = await fetch(`http://127.0.0.1:${running.port}/.well-known/jwks.json`)
  const { keys } = /** @type {{ keys: import('node:crypto').JsonWebKey[] }} */ (await answer.json())
  const [key] = keys
  if (key === undefined) throw new Error('the gateway publishes no key')
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
}
