// What a reload cannot change: where the gateway listens, its workers, its stores, and the secrets of its keys.
import { isSame } from './same.ts'
import type { Config } from './schema/schema.ts'

export interface ReloadPlan {
  /** The next configuration, with the current values of all that cannot be reloaded. */
  readonly config: Config
  /** JSON Pointers of the changes that need a restart. */
  readonly restartRequired: readonly string[]
}

/** @param now the active configuration @param next the one in the file */
export function keepImmutable(now: Config, next: Config): ReloadPlan {
  const { server, storage, auth, admin } = now
  const hasTls = (config: Config) => config.server.tls !== undefined
  const restartRequired = [
    ...changed('/server', server, next.server, ['listen', 'workers']),
    ...(hasTls(now) === hasTls(next) ? [] : ['/server/tls']),
    ...changed('/storage', storage, next.storage, Object.keys(storage) as (keyof typeof storage)[]),
    ...changed('/auth', auth, next.auth, ['key_secret', 'key_secret_old']),
  ]
  if ((admin === undefined) !== (next.admin === undefined)) restartRequired.push('/admin')
  else if (admin && next.admin) restartRequired.push(...changed('/admin', admin, next.admin, ['listen']))
  const { tls: ours, listen, workers } = server
  const { tls: theirs, ...rest } = next.server
  const tls = ours && (theirs ?? ours)
  const { admin: _, ...others } = next
  return {
    config: {
      ...others,
      server: { ...rest, listen, workers, ...(tls === undefined ? {} : { tls }) },
      storage,
      auth: { ...next.auth, key_secret: auth.key_secret, key_secret_old: auth.key_secret_old },
      ...(admin === undefined ? {} : { admin: { ...(next.admin ?? admin), listen: admin.listen } }),
    },
    restartRequired,
  }
}

function changed<T extends object>(section: string, now: T, next: T, keys: readonly (keyof T & string)[]) {
  return keys.filter(key => !isSame(now[key], next[key])).map(key => `${section}/${key}`)
}
