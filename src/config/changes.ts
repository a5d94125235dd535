// The difference between two configurations, summarized for the log: names and counts, never a value.
import { mapSteps, type Steps } from '../async/steps.ts'
import { isSame } from './same.ts'
import type { Config } from './schema/schema.ts'

export interface ConfigDiff {
  /** Changed sections, except the routes and upstreams, which are counted below. */
  readonly sections?: readonly string[]
  readonly routes?: Counts
  readonly upstreams?: Counts
}

interface Counts {
  readonly added: number
  readonly removed: number
  readonly changed: number
}

/** Leaves out what is unchanged. */
export function* diffSteps(before: Config, after: Config): Steps<ConfigDiff> {
  const { routes: oldRoutes, upstreams: oldUpstreams, tests: _, ...oldRest } = before
  const { routes, upstreams, tests: __, ...rest } = after
  const sections = (Object.keys({ ...oldRest, ...rest }) as (keyof typeof rest)[]).filter(
    name => !isSame(oldRest[name], rest[name]),
  )
  return {
    ...(sections.length === 0 ? {} : { sections }),
    ...(yield* diffCounts('routes', byName(oldRoutes), byName(routes))),
    ...(yield* diffCounts('upstreams', oldUpstreams, upstreams)),
  }
}

function byName(routes: Config['routes']): Record<string, unknown> {
  return Object.fromEntries(routes.map(route => [route.name, route]))
}

function* diffCounts(
  what: 'routes' | 'upstreams',
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Steps<ConfigDiff> {
  const common = Object.keys(after).filter(name => Object.hasOwn(before, name))
  const counts = {
    added: Object.keys(after).length - common.length,
    removed: Object.keys(before).length - common.length,
    changed: (yield* mapSteps(common, name => isSame(before[name], after[name]))).filter(same => !same)
      .length,
  }
  return Object.values(counts).some(count => count > 0) ? { [what]: counts } : {}
}
