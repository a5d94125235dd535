// Why a key was not rotated in, retired or resealed, and what to do about it.
import type { Retirement } from '../../identity/keys/key-administration.ts'
import type { Resealed } from '../../identity/resealing.ts'

export function noSuchKey(kid: string | undefined): Error {
  return new Error(`there is no key ${kid}: peage keys list shows which there are`)
}

export function alreadySigns(kid: string | undefined): Error {
  return new Error(`key ${kid} signs already`)
}

export function concurrentlyChanged(kid: string): Error {
  return new Error(`key ${kid} was changed by somebody else at the same time; it was not retired`)
}

export function retirementError(kid: string, retirement: Retirement): Error {
  if ('until' in retirement) {
    const until = retirement.until.toISOString()
    return new Error(
      `tokens that key ${kid} signed may be good until ${until}: retire it then, or with --force now, which ends them`,
    )
  }
  const which = retirement.outcome === 'will_sign' ? 'is about to sign' : 'is the one that signs'
  return new Error(`key ${kid} ${which}: peage keys rotate lets another sign first`)
}

export function unreadableAmong(keys: Resealed, webhooks: Resealed): Error | undefined {
  const unread = [
    ...named('signing key', keys.unreadable),
    ...named('webhook secret of user', webhooks.unreadable),
  ]
  if (unread.length === 0) return undefined
  return new Error(`neither auth.key_secret nor auth.key_secret_old opens the ${unread.join(', and the ')}`)
}

function named(what: string, keys: readonly string[]): string[] {
  if (keys.length === 0) return []
  const more = keys.length > mostNamed ? ` and ${keys.length - mostNamed} more` : ''
  return [`${what} ${keys.slice(0, mostNamed).join(', ')}${more}`]
}

/** `--json` lists all of them. */
const mostNamed = 20
