// Computes what a reload changes, and which changes need a restart.
import { isSameValue } from './same-value.ts'
import type { Config } from './sections/schema.ts'

interface ReloadPlan {
  /** The next configuration. In it, all settings that need a restart keep their current values. */
  readonly config: Config
  /** JSON Pointers of the changes that need a restart. */
  readonly restartRequired: readonly string[]
}

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
  return keys.filter(key => !isSameValue(now[key], next[key])).map(key => `${section}/${key}`)
}

interface ConfigDiff {
  /**
   * The names of the changed sections, except routes and upstreams. The next fields count changed routes and upstreams.
   */
  readonly sections?: readonly string[]
  readonly routes?: Counts
  readonly upstreams?: Counts
}

interface Counts {
  readonly added: number
  readonly removed: number
  readonly changed: number
}

/**
 * Returns the names of changed sections, and the numbers of changed routes and upstreams, for the log. Never returns
 * values. Unchanged parts are left out.
 */
export function diffConfigs(before: Config, after: Config): ConfigDiff {
  const { routes: oldRoutes, upstreams: oldUpstreams, tests: _, ...oldRest } = before
  const { routes, upstreams, tests: __, ...rest } = after
  const sections = (Object.keys({ ...oldRest, ...rest }) as (keyof typeof rest)[]).filter(
    name => !isSameValue(oldRest[name], rest[name]),
  )
  return {
    ...(sections.length === 0 ? {} : { sections }),
    ...diffCounts('routes', byName(oldRoutes), byName(routes)),
    ...diffCounts('upstreams', oldUpstreams, upstreams),
  }
}

function byName(routes: Config['routes']): Record<string, unknown> {
  return Object.fromEntries(routes.map(route => [route.name, route]))
}

function diffCounts(
  what: 'routes' | 'upstreams',
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): ConfigDiff {
  const common = Object.keys(after).filter(name => Object.hasOwn(before, name))
  const counts = {
    added: Object.keys(after).length - common.length,
    removed: Object.keys(before).length - common.length,
    changed: common.filter(name => !isSameValue(before[name], after[name])).length,
  }
  return Object.values(counts).some(count => count > 0) ? { [what]: counts } : {}
}
