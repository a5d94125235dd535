// Loads a YAML block as `peage check` does. A block with only a part of a gateway.yaml is completed first.
import { parse, stringify } from 'yaml'
import { formatDiagnostic } from '../../../src/config/diagnostics.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Block } from './blocks.ts'

interface Written {
  upstreams?: Record<string, unknown>
  routes?: { upstream?: string }[]
}

/** Returns all problems of the block, each with the page and line of the block. */
export function problemsOf({ page, line, text }: Block): string[] {
  const written = parse(text) as Written
  const isWhole = written.upstreams !== undefined && written.routes !== undefined
  const loaded = loadConfig({
    file: 'block',
    env: anything,
    readFile: name => (name === 'block' ? whole() : valueFor(name)),
  })
  return 'problems' in loaded
    ? loaded.problems.map(problem => `${page}:${line}: ${formatDiagnostic(problem)}`)
    : []

  function whole(): string {
    return isWhole ? text : stringify(completed(written))
  }
}

/** Adds the upstreams that the routes need. If there are no routes, adds a route to an upstream. */
function completed(written: Written): Written {
  const named = (written.routes ?? []).flatMap(route => route.upstream ?? [])
  const [first = 'courses'] = [...Object.keys(written.upstreams ?? {}), ...named]
  const targets = Object.fromEntries([...new Set([first, ...named])].map((name, i) => [name, target(i)]))
  return {
    ...written,
    upstreams: { ...targets, ...written.upstreams },
    routes: written.routes ?? ([{ path: '/completed/*', upstream: first }] as Written['routes'] & object),
  }
}

function target(i: number) {
  return { targets: [`http://127.0.0.1:${9000 + i}`] }
}

/** Returns a valid value for the variable or file with this name. Each secret has a different value. */
function valueFor(name: string): string {
  if (name === 'EVENTS_SECRET') return `whsec_${Buffer.alloc(24).toString('base64')}`
  return /url$/i.test(name) ? 'postgres://peage@127.0.0.1/peage' : `a-long-secret-for-${name}`
}

/** An environment in which every variable is set. */
const anything = new Proxy<Record<string, string>>(
  {},
  {
    get: (_, name) => valueFor(String(name)),
    getOwnPropertyDescriptor: (_, name) => ({
      value: valueFor(String(name)),
      configurable: true,
      enumerable: true,
      writable: true,
    }),
  },
)
