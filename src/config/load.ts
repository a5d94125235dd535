// Turns the configuration file into the configuration that the gateway runs on, or into the list of its errors.
import { availableParallelism } from 'node:os'
import { appendToPointer, locateDiagnostics, type Position, type Problems } from './diagnostics.ts'
import { type Listing, listValues, maskProblems } from './listing.ts'
import { readLimited } from './read-file.ts'
import { checkRules } from './rules/check-rules.ts'
import { checkKeyFiles } from './rules/key-rules.ts'
import { checkMail, checkMailTemplates } from './rules/mail-rules.ts'
import { checkAuthorities, checkCertificate, checkDatabaseFiles } from './rules/tls.ts'
import { checkWarnings } from './rules/warnings.ts'
import { type Config, type DecodedConfig, type ProviderConfig, schema } from './sections/schema.ts'
import { decode } from './sections/shape.ts'
import { type LocatedCase, locateCases } from './test-cases.ts'
import { validate } from './validate.ts'
import { readSource, type SourceFile } from './yaml/read-source.ts'
import { positionsOf, type YamlSource } from './yaml/yaml-source.ts'

interface ConfigSource extends SourceFile {
  /**
   * The number of CPU cores. With `server.workers: auto`, the gateway starts this number of workers. The default of
   * `auth.hashing.concurrency` also depends on this number.
   */
  readonly cores?: number
  /**
   * The number of worker processes that already run. It stays the same until a restart, even if the file has a new
   * number.
   */
  readonly workers?: number
  /**
   * Whether to check the files that a gateway reads at startup, for example certificates. A command that only uses the
   * stores does not need these files.
   */
  readonly toServe?: boolean
}

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: Problems
  readonly cases: readonly LocatedCase[]
  /** Line numbers of the sections and their keys, by JSON Pointer. */
  readonly lines: Readonly<Record<string, number>>
  /** The environment variables in the value of each key of a section, by JSON Pointer. Used for messages. */
  readonly variables: Variables
  /** The values that operators may see. Set only if `toServe` is true. */
  readonly listing?: Listing
}

export type Variables = Readonly<Record<string, readonly string[]>>

/** If the file is invalid, returns the problems in file order, and does not throw. */
export function loadConfig(source: ConfigSource): LoadedConfig | Problems {
  const { file, cores = availableParallelism(), readFile = readLimited } = source
  const read = readSource(source, Object.keys(schema.properties), 'run peage init to write a sample')
  if ('problems' in read) return read
  const { yaml, text } = read
  const validation = validate(schema, yaml)
  const diagnostics = [
    ...yaml.diagnostics,
    ...validation.diagnostics,
    ...checkRules(yaml, validation),
    ...checkMail(yaml, validation, source.env),
  ]
  if (source.toServe) {
    diagnostics.push(...filesToServeWith.flatMap(check => check(yaml, validation, readFile)))
  }
  const warnings = locateDiagnostics(file, text, checkWarnings(yaml, validation))
  if (diagnostics.length > 0) {
    const located = locateDiagnostics(file, text, diagnostics)
    const listed = source.toServe ? { listed: maskProblems(located, yaml) } : {}
    return { ...located, warnings, ...listed }
  }
  const config = applyComputedDefaults(decode(schema, yaml.value), cores, source.workers)
  return {
    config,
    warnings,
    cases: locateCases(config.tests, file, yaml, text),
    lines: linesOf(config, positionsOf(yaml, text)),
    variables: variablesOf(yaml),
    ...(source.toServe ? { listing: listValues(yaml, positionsOf(yaml, text)) } : {}),
  }
}

/** Checks of the files that a gateway reads before it listens. */
const filesToServeWith = [
  checkCertificate,
  checkAuthorities,
  checkKeyFiles,
  checkDatabaseFiles,
  checkMailTemplates,
]

/**
 * Returns line numbers for log messages about settings that need a restart. Routes, upstreams and test cases are left
 * out, because they never need a restart.
 */
function linesOf(
  { routes: _, upstreams: __, tests: ___, ...sections }: Config,
  positionOf: (pointer: string) => Position,
): Record<string, number> {
  const pointers = Object.entries(sections).flatMap(([name, section]) => {
    const pointer = appendToPointer('', name)
    return [pointer, ...Object.keys(section ?? {}).map(key => appendToPointer(pointer, key))]
  })
  return Object.fromEntries(['', ...pointers].map(pointer => [pointer, positionOf(pointer).line]))
}

function variablesOf({ interpolated }: YamlSource): Variables {
  return Object.fromEntries([...interpolated].filter(([pointer]) => /^\/[^/]+\/[^/]+$/.test(pointer)))
}

/** The default number of libuv threads. Operators who set UV_THREADPOOL_SIZE should set `hashing.concurrency` too. */
const LIBUV_THREADS = 4

/** Fills in defaults that the schema cannot express. */
function applyComputedDefaults(
  { server, auth, routes, mail, events, ...rest }: DecodedConfig,
  cores: number,
  running: number | undefined,
): Config {
  const workers = server.workers === 'auto' ? cores : server.workers
  const concurrency = auth.hashing.concurrency ?? hashConcurrency(cores / (running ?? workers))
  return {
    ...rest,
    server: { ...server, workers },
    auth: { ...auth, hashing: { ...auth.hashing, concurrency }, providers: usableProviders(auth.providers) },
    routes: nameRoutes(routes),
    ...usableMail(mail),
    ...(events === undefined || events.url === '' ? {} : { events }),
  }
}

/** Leaves out the providers without a client ID. So an empty environment variable can switch a provider off. */
function usableProviders(providers: DecodedConfig['auth']['providers']): ProviderConfig[] {
  return Object.entries(providers)
    .filter(([, { client_id }]) => client_id !== '')
    .map(([name, { audiences, label, ...provider }]) => ({
      ...provider,
      name,
      label: label ?? name,
      audiences: audiences.filter(audience => audience !== ''),
    }))
}

/**
 * Removes the `mail` section if its `smtp` is empty. If `smtp` is set, `from` is set too, because `checkMail` has
 * checked this.
 */
function usableMail(mail: DecodedConfig['mail']): Pick<Config, 'mail'> {
  const { smtp, from } = mail ?? {}
  return mail === undefined || smtp === undefined || from === undefined
    ? {}
    : { mail: { ...mail, smtp, from, product: mail.product ?? hostOf(from.address) } }
}

function hostOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

/**
 * Returns how many password hashes may run at the same time in a process with this number of cores. At least two libuv
 * threads stay free for signature checks and DNS lookups. Otherwise, every request would wait for logins.
 */
function hashConcurrency(cores: number): number {
  return Math.max(1, Math.min(Math.floor(cores), LIBUV_THREADS - 2))
}

/**
 * Gives each route a name for logs and metrics. For example, the route `/api/v1/courses/:id` gets the name
 * `api-v1-courses-id`.
 */
function nameRoutes<Route extends { name?: string; path: string }>(
  routes: readonly Route[],
): (Route & { name: string })[] {
  const usedNames = new Set(routes.map(route => route.name))
  /** Maps each base name to the suffix that is tried next. */
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
