// What the keys of a `cors` section demand of each other, at the server and at every route (CONTRACT §2).

import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { everyOrigin } from '../formats/addresses.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

export function checkCors(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { server, routes } = yaml.value as { server?: unknown; routes?: unknown }
  const sections: [unknown, string][] = [[server, '/server']]
  if (Array.isArray(routes)) {
    for (const [index, route] of routes.entries()) sections.push([route, appendToPointer('/routes', index)])
  }
  return sections.flatMap(([section, pointer]) => {
    const corsPointer = appendToPointer(pointer, 'cors')
    const { cors } = (section ?? {}) as { cors?: { origins?: unknown; credentials?: unknown } | null }
    if (cors?.credentials !== true || !validation.isValid(appendToPointer(corsPointer, 'credentials')))
      return []
    // Otherwise any web page could act, and read responses, as the user who is signed in there.
    if (!Array.isArray(cors.origins) || !cors.origins.includes(everyOrigin)) return []
    const message = 'cannot go with every origin (*): name the origins that may send credentials'
    return [diagnosticAt(yaml, appendToPointer(corsPointer, 'credentials'), message)]
  })
}
