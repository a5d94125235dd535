// Names the routes that were declared without a name: logs and metrics need one.

/** `/api/v1/courses/:id` → `api-v1-courses-id`; numbered if that is taken, `root` if nothing is left of the path. */
export function nameRoutes<Route extends { name?: string; path: string }>(
  routes: readonly Route[],
): (Route & { name: string })[] {
  const usedNames = new Set(routes.map(route => route.name))
  /** The next suffix to try, by taken name. */
  const numbers = new Map<string, number>()
  return routes.map(route => {
    if (route.name !== undefined) return { ...route, name: route.name }
    const base = route.path.replace(/[^A-Za-z0-9_.]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '') || 'root'
    let name = base
    let suffix = numbers.get(base) ?? 2
    for (; usedNames.has(name); suffix++) name = `${base}-${suffix}`
    numbers.set(base, suffix)
    usedNames.add(name)
    return { ...route, name }
  })
}
