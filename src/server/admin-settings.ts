// What the admin listener reads of the active configuration.
import { createPasswords, type Passwords } from '../accounts/password.ts'
import { createAddressFilter, type IsAllowedAddress } from '../admin/allowed-addresses.ts'
import { isConsoleBuilt } from '../admin/console/assets.ts'
import { createBrowserView, type SeenByBrowser } from '../admin/console/browser-view.ts'
import { createOperators, type Operators } from '../admin/operators.ts'
import type { Config } from '../config/sections/schema.ts'

export interface AdminSettings {
  operators: Operators
  isAllowedAddress: IsAllowedAddress
  seenByBrowser: SeenByBrowser
  isConsoleOn: boolean
  routes: Config['routes']
  upstreamNames: string[]
  /** Undefined where no mails can be sent. */
  resetTtlMs: number | undefined
  /** Bounded by `auth.hashing` for itself: operators need not wait behind logins. */
  hashPassword: Passwords['hash']
  warnings: string[]
}

export function adminSettingsOf(config: Config): AdminSettings {
  const { token = '', tokens = {}, allow_from, console = false } = config.admin ?? {}
  const operators = createOperators({ token: { token, may: 'all' }, ...tokens })
  return {
    operators,
    isAllowedAddress: createAddressFilter(allow_from, config.server.trusted_proxies),
    seenByBrowser: createBrowserView(config.server.trusted_proxies),
    isConsoleOn: console && operators.hasAny && isConsoleBuilt,
    routes: config.routes,
    upstreamNames: Object.keys(config.upstreams),
    resetTtlMs: config.mail?.code_ttl.reset,
    hashPassword: createPasswords(config.auth.hashing).hash,
    warnings: warningsOf(config),
  }
}

/** Settings that work but should not be used in production. */
function warningsOf({ auth, mail }: Config): string[] {
  if (auth.key_secret !== '') return []
  const bare = [
    ...(auth.keys.length > 0 ? [] : ['signing keys']),
    'webhook secrets',
    ...(mail === undefined ? [] : ['what tells the codes of mails']),
  ]
  const all = [bare.slice(0, -1).join(', '), ...bare.slice(-1)].filter(part => part !== '').join(' and ')
  return [`auth.key_secret is not set: ${all} stand unencrypted in the database`]
}
