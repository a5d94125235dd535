// What the parts of a `cors` section demand of each other, at the server and at every route (CONTRACT §2).

import type { Fault } from '../diagnostics.ts'
import { everyOrigin } from '../formats/origin.ts'
import { pointTo } from '../pointer.ts'
import type { Shape } from '../validate.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'

export function checkCors(sheet: Sheet, shape: Shape): Fault[] {
  const { server, routes } = sheet.value as { server?: unknown; routes?: unknown }
  const holders: [unknown, string][] = [[server, '/server']]
  if (Array.isArray(routes)) {
    for (const [index, route] of routes.entries()) holders.push([route, pointTo('/routes', index)])
  }
  return holders.flatMap(([holder, pointer]) => {
    const at = pointTo(pointer, 'cors')
    const { cors } = (holder ?? {}) as { cors?: { origins?: unknown; credentials?: unknown } | null }
    if (cors?.credentials !== true || !shape.sound(pointTo(at, 'credentials'))) return []
    // Any page of the web could then act, and read, as whoever is signed in there.
    if (!Array.isArray(cors.origins) || !cors.origins.includes(everyOrigin)) return []
    const message = 'cannot go with every origin (*): name the origins that may send credentials'
    return [faultAt(sheet, pointTo(at, 'credentials'), message)]
  })
}
