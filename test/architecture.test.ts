// The house laws that imports can tell: arrows point down, one door per dependency, SQL and French in their places.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const src = fileURLToPath(new URL('../src', import.meta.url))
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))

interface Import {
  from: string
  /** A file under src/, or the name of a package. */
  to: string
  /** Loaded when it is needed, and not with the file. */
  isLate: boolean
}

const imports: Import[] = files.flatMap(from =>
  [
    ...read(from).matchAll(
      /^(?:import|export)[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
    ),
  ].map(match => {
    const to = (match[1] ?? match[2] ?? match[3]) as string
    return {
      from,
      to: to.startsWith('.') ? normalize(join(dirname(from), to)) : to,
      isLate: match[3] !== undefined,
    }
  }),
)

function read(file: string): string {
  return readFileSync(join(src, file), 'utf8')
}

/** The room of a file; what stands directly under src/ is a room of its own. */
function roomOf(file: string): string {
  const [first = '', ...rest] = file.split('/')
  return rest.length === 0 ? first.replace('.ts', '') : first
}

/** What each room may see of the others, besides itself. */
const sees: Record<string, readonly string[]> = {
  clock: [],
  metrics: [],
  tracing: ['metrics', 'wire'],
  steps: [],
  workers: ['config', 'metrics', 'steps', 'upstream'],
  config: ['steps'],
  wire: ['refusals'],
  refusals: ['backing'],
  backing: ['clock', 'config'],
  identity: ['accounts', 'backing', 'clock', 'config', 'refusals'],
  accounts: ['backing', 'clock', 'identity', 'refusals'],
  usage: ['backing', 'clock'],
  webhooks: ['accounts', 'backing', 'clock', 'identity', 'refusals'],
  upstream: ['config', 'metrics', 'refusals', 'wire'],
  gate: ['accounts', 'backing', 'clock', 'config', 'identity', 'refusals', 'steps', 'upstream', 'usage'],
  endpoints: ['accounts', 'backing', 'config', 'identity', 'openapi', 'refusals', 'webhooks', 'wire'],
  openapi: ['accounts', 'refusals'],
  explain: [
    ...[
      'accounts',
      'backing',
      'clock',
      'config',
      'endpoints',
      'gate',
      'metrics',
      'refusals',
      'upstream',
      'usage',
    ],
    // What leads a request from the gate to its upstream or its refusal, without the listener.
    ...['passage', 'routed'],
  ],
  admin: [
    'accounts',
    'backing',
    'clock',
    'config',
    'identity',
    'metrics',
    'openapi',
    'refusals',
    'webhooks',
    'wire',
  ],
}

/** Packages, and the only places where they are known. */
const doors: Record<string, readonly string[]> = {
  argon2: ['accounts/password.ts'],
  jose: ['identity/'],
  pg: ['backing/postgres.ts', 'backing/postgres-listener.ts'],
  '@electric-sql/pglite': ['backing/pglite.ts'],
  'node-pg-migrate': ['backing/migrate.ts'],
  ioredis: ['backing/redis.ts'],
  'lru-cache': ['identity/', 'usage/'],
  undici: ['upstream/', 'webhooks/send.ts'],
  opossum: ['upstream/circuit.ts'],
  yaml: ['config/'],
  typebox: ['config/', 'openapi/', 'endpoints/', 'admin/'],
  ajv: ['config/'],
  'ipaddr.js': ['config/', 'gate/client-address.ts', 'webhooks/addresses.ts'],
  pino: ['log.ts'],
  'prom-client': ['metrics/'],
  '@opentelemetry': ['tracing/'],
  'pino-pretty': ['log.ts'],
  commander: ['commands/'],
  'node:cluster': ['workers/', 'worker.ts'],
  fastify: ['front-door.ts', 'admin/', 'refusals/doors.ts'],
}

function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')
}

/** Types are free: they leave nothing behind in the program. */
function isTypeOnly({ from, to }: Import): boolean {
  const module = to.split('/').at(-1)
  return new RegExp(`^import type [^']*from '[^']*${module}'`, 'm').test(read(from))
}

describe('the house', () => {
  it('has imports to look at', () => {
    expect(imports.length).toBeGreaterThan(200)
  })

  it.each(Object.keys(sees))('the room %s sees only what lies below it', room => {
    const allowed = new Set([room, ...(sees[room] ?? [])])
    const upward = imports
      .filter(({ from, to }) => roomOf(from) === room && to.endsWith('.ts') && !allowed.has(roomOf(to)))
      .filter(edge => !isTypeOnly(edge))
    expect(upward).toEqual([])
  })

  it('no room below the gateway knows the composition', () => {
    const tops = ['gateway.ts', 'server.ts', 'cli.ts', 'front-door.ts']
    const edges = imports.filter(({ from, to }) => roomOf(from) in sees && tops.includes(to))
    expect(edges).toEqual([])
  })

  it.each(Object.entries(doors))('%s has one door', (name, places) => {
    const users = imports
      .filter(({ to }) => to === name || to.startsWith(`${name}/`))
      .filter(edge => !isTypeOnly(edge))
      .map(({ from }) => from)
    expect(users.length).toBeGreaterThan(0)
    expect(users.filter(from => !places.some(place => from.startsWith(place)))).toEqual([])
  })

  it('SQL stands in stores and in backing', () => {
    const statement = /['"`]\s*(?:select|insert into|update|delete from|with) [a-z_0-9]/
    const places = files.filter(file => statement.test(withoutComments(read(file))))
    expect(places.length).toBeGreaterThan(3)
    expect(places.filter(file => !/-store\.ts$|^backing\//.test(file))).toEqual([])
  })

  it('French stands in one file', () => {
    const sentence = /['"`][^'"`\n]*[éèàêç][^'"`\n]*['"`]/
    const spoken = (file: string) => withoutComments(read(file)).replaceAll('Péage', '')
    expect(files.filter(file => sentence.test(spoken(file)))).toEqual(['refusals/catalog.ts'])
  })

  it('OpenTelemetry is loaded where traces are on, and nowhere else', () => {
    const late = imports.filter(({ from, isLate }) => isLate && from.startsWith('tracing/'))
    expect(late.map(({ from, to }) => [from, to])).toEqual([['tracing/open.ts', 'tracing/create.ts']])
    const withSdk = new Set(
      imports.filter(({ to }) => to.startsWith('@opentelemetry')).map(({ from }) => from),
    )
    withSdk.add('tracing/create.ts')
    const loading = imports.filter(({ from, to, isLate }) => withSdk.has(to) && !withSdk.has(from) && !isLate)
    expect(loading.filter(edge => !isTypeOnly(edge))).toEqual([])
  })

  it('only programs’ entry points and the demo read the environment', () => {
    const readers = files.filter(file => /process\.env/.test(read(file)))
    expect(readers.filter(file => !/^(cli\.ts|worker\.ts|commands\/|demo\/)/.test(file))).toEqual([])
  })
})
