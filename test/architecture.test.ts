// Tests the architecture rules: the order of the rooms (the top-level parts of src/), and which files are allowed to
// import a package or to contain SQL or French.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { roomRules } from '../scripts/room-rules.mjs'
import { floors } from '../scripts/rooms.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const src = join(root, 'src')
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))
const rooms = floors.flat().map(({ name }) => name)

interface Import {
  from: string
  /** A file under src/, or the name of a package. */
  to: string
  /** True for `import()`, which loads the module on demand. */
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

/** The only files and folders that are allowed to import each package. */
const packages: Record<string, readonly string[]> = {
  argon2: ['accounts/password.ts'],
  '@node-rs/bcrypt': ['accounts/hashes/derive.ts'],
  jose: ['identity/', 'providers/'],
  pg: ['storage/postgres/'],
  '@electric-sql/pglite': ['storage/pglite/pglite.ts'],
  'node-pg-migrate': ['storage/migrate.ts'],
  ioredis: ['storage/redis/'],
  'lru-cache': ['async/lru.ts'],
  'openid-client': ['providers/code-flow.ts'],
  undici: ['upstream/', 'webhooks/sending/send.ts', 'providers/limited-fetch.ts'],
  yaml: ['config/'],
  'ipaddr.js': [
    'config/',
    'http/client-address.ts',
    'http/embedded-ipv4.ts',
    'upstream/targets/dialled-addresses.ts',
    'webhooks/address/public-address.ts',
  ],
  nodemailer: ['mail/sending/'],
  pino: ['observability/logger.ts'],
  'prom-client': ['observability/metrics/'],
  '@opentelemetry': ['observability/tracing/'],
  'pino-pretty': ['observability/logger.ts'],
  commander: ['commands/'],
  'node:cluster': ['server/workers/', 'worker.ts'],
  fastify: ['proxy/', 'admin/', 'http/error-handlers.ts'],
}

function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')
}

/** Returns whether the import is `import type`. Every file may import types, because they do not exist at run time. */
function isTypeOnly({ from, to }: Import): boolean {
  const module = to.split('/').at(-1)
  return new RegExp(`^import type [^']*from '[^']*${module}'`, 'm').test(read(from))
}

describe('the rooms (the top-level parts of src/)', () => {
  it('contain more than 200 imports, which shows that the test finds imports', () => {
    expect(imports.length).toBeGreaterThan(200)
  })

  it('are listed in scripts/rooms.mjs, which contains every entry of src/ exactly once', () => {
    expect(readdirSync(src).sort()).toEqual([...rooms].sort())
  })

  it('have an order, and biome.rooms.json contains exactly the linter rules for this order', () => {
    expect(JSON.parse(readFileSync(join(root, 'biome.rooms.json'), 'utf8'))).toEqual(JSON.parse(roomRules()))
  })

  it('are described in docs/dev/architecture.md with the same texts as in scripts/rooms.mjs', () => {
    const page = readFileSync(join(root, 'docs/dev/architecture.md'), 'utf8')
    for (const { name, duty } of floors.flat()) expect(page).toContain(`| \`${name}\` | ${duty} |`)
  })

  it('contain no subfolder with the name of a room, except in commands/', () => {
    const folders = new Set(files.map(dirname).filter(folder => folder.includes('/')))
    const twins = [...folders].filter(
      folder => !folder.startsWith('commands/') && rooms.includes(folder.split('/').at(-1) as string),
    )
    expect(twins).toEqual([])
  })

  it('contain no file with the same name as a folder next to it', () => {
    const twins = files.filter(file => existsSync(join(src, file.replace(/\.ts$/, ''))))
    expect(twins).toEqual([])
  })

  it('contain only forms of import that the linter checks', () => {
    const unseen =
      /\bimport\(['"][^'"]+['"]\)\.|\btypeof import\(|\bimport\(`|\bcreateRequire\b|[:=]\s*import\(/
    expect(files.filter(file => unseen.test(withoutComments(read(file))))).toEqual([])
  })

  it('contain no file with more than 300 lines', () => {
    expect(files.filter(file => read(file).split('\n').length > 301)).toEqual([])
  })
})

describe('the source code', () => {
  it.each(Object.entries(packages))(
    'imports the package %s only in the files and folders that this test allows',
    (name, places) => {
      const users = imports
        .filter(({ to }) => to === name || to.startsWith(`${name}/`))
        .filter(edge => !isTypeOnly(edge))
        .map(({ from }) => from)
      expect(users.length).toBeGreaterThan(0)
      expect(users.filter(from => !places.some(place => from.startsWith(place)))).toEqual([])
    },
  )

  it('uses common technical terms in identifiers instead of unusual words', () => {
    const words =
      /^(?:arrivals?|asked|doors?|faults?|held|kept|lasting|namesakes?|passages?|rivals?|sheets?|shelf|sound|standings?)$/i
    const code = (file: string) =>
      withoutComments(read(file)).replace(/'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g, '')
    const found = files.flatMap(file =>
      (code(file).match(/[A-Z]?[a-z]+/g) ?? [])
        .filter(word => words.test(word))
        .map(word => `${word} in ${file}`),
    )
    // These names must stay, because they are part of an output: `kept_in` is a key of `keys list --json`, `fault` is a
    // log field, and `faults` is a key of `users import --json`.
    expect(found.sort()).toEqual([
      'fault in http/tls-certificate.ts',
      'faults in commands/users/import/import-file.ts',
      'kept in commands/keys/print-keys.ts',
    ])
  })

  it('contains SQL only in files named *-store.ts and in the folder storage/', () => {
    const statement = /['"`]\s*(?:select|insert into|update|delete from|with) [a-z_0-9]/
    const places = files.filter(file => statement.test(withoutComments(read(file))))
    expect(places.length).toBeGreaterThan(3)
    expect(places.filter(file => !/-store\.ts$|^storage\//.test(file))).toEqual([])
  })

  it('creates each store in only one place, except in commands/', () => {
    const places = files
      .filter(file => !file.startsWith('commands/'))
      .flatMap(file =>
        [...read(file).matchAll(/(?<!function )\bcreate[A-Z]\w*Store\(/g)].map(([call]) => call),
      )
    expect(places.length).toBeGreaterThan(10)
    expect(places.filter((call, index) => places.indexOf(call) !== index)).toEqual([])
  })

  it('contains French only in the catalog of error texts and in the mail texts', () => {
    const sentence = /['"`][^'"`\n]*[éèàêç][^'"`\n]*['"`]/
    const spoken = (file: string) => withoutComments(read(file)).replaceAll('Péage', '')
    expect(files.filter(file => sentence.test(spoken(file))).sort()).toEqual([
      'mail/composing/texts.ts',
      'refusals/catalog.ts',
    ])
  })

  it('loads OpenTelemetry only by the dynamic import in observability/tracing/open.ts', () => {
    const tracing = 'observability/tracing/'
    const late = imports.filter(({ from, isLate }) => isLate && from.startsWith(tracing))
    expect(late.map(({ from, to }) => [from, to])).toEqual([[`${tracing}open.ts`, `${tracing}otel.ts`]])
    const withSdk = new Set(
      imports.filter(({ to }) => to.startsWith('@opentelemetry')).map(({ from }) => from),
    )
    withSdk.add(`${tracing}otel.ts`)
    const loading = imports.filter(({ from, to, isLate }) => withSdk.has(to) && !withSdk.has(from) && !isLate)
    expect(loading.filter(edge => !isTypeOnly(edge))).toEqual([])
  })

  it.each([
    ['nodemailer', 'mail/sending/smtp-sender.ts'],
    ['openid-client', 'providers/code-flow.ts'],
  ])('loads the package %s only by a dynamic import of the file %s', (name, user) => {
    const users = imports.filter(({ to }) => to.startsWith(name)).map(({ from }) => from)
    const withLibrary = new Set([...users, user])
    const loading = imports.filter(
      ({ from, to, isLate }) => withLibrary.has(to) && !withLibrary.has(from) && !isLate,
    )
    expect(loading.filter(edge => !isTypeOnly(edge))).toEqual([])
  })

  it('reads environment variables only in entry points and commands', () => {
    const readers = files.filter(file => /process\.env/.test(read(file)))
    expect(readers.filter(file => !/^(cli\.ts|worker\.ts|commands\/)/.test(file))).toEqual([])
  })
})
