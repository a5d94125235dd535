// Names for routes that were given none: logs and metrics need one.

/** `/api/v1/courses/:id` → `api-v1-courses-id`; numbered where the name is taken, `root` where nothing is left. */
export function nameRoutes<Route extends { name?: string; path: string }>(
  routes: readonly Route[],
): (Route & { name: string })[] {
  const taken = new Set(routes.map(route => route.name))
  /** By the name that is taken: the number to go on with. */
  const numbers = new Map<string, number>()
  return routes.map(route => {
    if (route.name !== undefined) return { ...route, name: route.name }
    const made = route.path.replace(/[^A-Za-z0-9_.]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '') || 'root'
    let name = made
    let next = numbers.get(made) ?? 2
    for (; taken.has(name); next++) name = `${made}-${next}`
    numbers.set(made, next)
    taken.add(name)
    return { ...route, name }
  })
}
