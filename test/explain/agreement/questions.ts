// Generates requests to the declared paths of a configuration, to other paths, and to mutated paths.
import fc from 'fast-check'
import type { Config, RouteConfig } from '../../../src/config/sections/schema.ts'
import type { ExplainRequest } from '../../../src/explain/explain.ts'
import { operations } from '../../security/fuzz/operations.ts'
import { mutateTarget } from '../../security/fuzz/path-mutations.ts'

export function questions({ routes }: Config): fc.Arbitrary<ExplainRequest> {
  return fc.constantFrom(...routes).chain(questionsTo)
}

const methods = ['GET', 'GET', 'GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']
const hosts = [
  'localhost',
  'api.example.com',
  'API.Example.com.:8080',
  'admin.example.com',
  'other.example.com',
  'a.admin.example.com',
]

/** The API keys of each user: one without scopes, and keys with scopes. */
export const keys = [{ scopes: null }, { scopes: ['a'] }, { scopes: ['b'] }, { scopes: ['b', 'a'] }] as const

/** Generates requests to the path of a route. Most of these requests match the route. */
function questionsTo(route: RouteConfig): fc.Arbitrary<ExplainRequest> {
  const meant = route.methods ?? methods
  return fc
    .record({
      method: mostly(meant, methods),
      fill: fc.array(fc.constantFrom('a', 'b', 'q', 'Z', '7', '%20x', 'x.y'), { minLength: 6, maxLength: 6 }),
      steps: fc.oneof(
        { weight: 5, arbitrary: fc.constant([]) },
        { weight: 4, arbitrary: operations(2) },
        { weight: 1, arbitrary: operations(4) },
      ),
      elsewhere: fc.oneof(
        { weight: 9, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...others) },
      ),
      query: fc.constantFrom('', '', '', '?page=2', '?a=b&c=%2F', '?', '?x=/../'),
      host: mostly(route.hosts.length === 0 ? ['localhost'] : route.hosts.map(oneOf), hosts),
      as: fc.constantFrom('anonymous', 'free', 'free', 'premium', 'pro'),
      usedToday: fc.constantFrom(0, 0, 1, 2, 3, 7),
      key: fc.oneof(
        { weight: 2, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...keys) },
      ),
    })
    .map(({ fill, steps, elsewhere, query, key, ...others }) => {
      const rest = key === undefined || others.as === 'anonymous' ? others : { ...others, key }
      const plain = (elsewhere ?? filled(route.path, fill)) + query
      const mutated = mutateTarget(plain, steps)
      return { ...rest, path: isSendable(mutated) ? mutated : plain } as ExplainRequest
    })
}

/** Returns a host name that matches. @param host an entry of `hosts` in a route: a host name or a wildcard */
const oneOf = (host: string) => host.replace('*', 'x')

function mostly(meant: readonly string[], any: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...meant) },
    { weight: 1, arbitrary: fc.constantFrom(...any) },
  )
}

/** Paths of local endpoints, and other paths that do not depend on the routes. */
const others = [
  ...['/', '/a', '/a/b', '/b/c', '/nobody/here', 'http://api.example.com/a', 'http://localhost/a/b'],
  ...['/api/v1/auth/login', '/api/v1/auth/nothing', '/api/v1/user/api-token', '/api/v1/user/webhook'],
  ...['/api/v1/auth/keys/unknown', '/api/v1/auth/usage'],
  ...['/api/v1/subscription/upgrade', '/.well-known/jwks.json', '/API/V1/Auth/Logout/', '/api/v1/user/'],
]

function filled(pattern: string, fill: readonly string[]): string {
  const at = (index: number) => fill[index % fill.length] as string
  return pattern
    .split('/')
    .map((segment, index) => (segment.startsWith(':') ? at(index) : segment))
    .join('/')
    .replace(
      /\/?\*$/,
      fill
        .slice(0, fill.length - 3 - (fill[0] === 'q' ? 3 : 0))
        .map(one => `/${one}`)
        .join(''),
    )
    .replace(/^$/, '/')
}

/** Returns whether the HTTP parser accepts a request line with this target. */
function isSendable(target: string): boolean {
  return /^(\/[\x21-\x7e]*|https?:\/\/[a-z0-9.-]+(:\d{1,4})?([/?][\x21-\x7e]*)?)$/i.test(target)
}
