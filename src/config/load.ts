// Turns the file that operators write into the configuration that the gateway runs on, or into all of its errors.
import { availableParallelism } from 'node:os'
import { appendToPointer, locateDiagnostics, type Position, type Problems } from './diagnostics.ts'
import { type Listing, listValues, maskProblems } from './listing.ts'
import { readLimited } from './read-file.ts'
import { checkRules } from './rules/check-rules.ts'
import { checkKeyFiles } from './rules/key-rules.ts'
import { checkMail, checkMailTemplates } from './rules/mail-rules.ts'
import { checkAuthorities, checkCertificate, checkDatabaseFiles } from './rules/tls.ts'
import { checkWarnings } from './rules/warnings.ts'
import { type Config, type DecodedConfig, schema } from './sections/schema.ts'
import { decode } from './sections/shape.ts'
import { type LocatedCase, locateCases } from './test-cases.ts'
import { validate } from './validate.ts'
import { readSource, type SourceFile } from './yaml/read-source.ts'
import { positionsOf, type YamlSource } from './yaml/yaml-source.ts'

interface ConfigSource extends SourceFile {
  /** The number of workers for `auto`; also limits the default of `auth.hashing.concurrency`. */
  readonly cores?: number
  /** Those that run already: until a restart the machine is shared among them, whatever the file says by now. */
  readonly workers?: number
  /** Also checks the files that a gateway starts with; a command that only uses the stores need not read them. */
  readonly toServe?: boolean
}

export interface LoadedConfig {
  readonly config: Config
  /** What is valid, but hardly what was meant. */
  readonly warnings: Problems
  /** `tests`, each with its position in the file. */
  readonly cases: readonly LocatedCase[]
  /** Line numbers of the sections and their keys, by JSON Pointer. */
  readonly lines: Readonly<Record<string, number>>
  /** The environment variables that keys of the sections name, by JSON Pointer, for messages. */
  readonly variables: Variables
  /** For operators; only of a file to serve with. */
  readonly listing?: Listing
}

export type Variables = Readonly<Record<string, readonly string[]>>

/** Reads, completes, checks and decodes gateway.yaml. Never throws for its content; problems come in file order. */
export function loadConfig(source: ConfigSource): LoadedConfig | Problems {
  const { file, cores = availableParallelism(), readFile = readLimited } = source
  const read = readSource(source, Object.keys(schema.properties), 'peage init writes a sample')
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

/** Checks the files that a gateway reads before it listens. */
const filesToServeWith = [
  checkCertificate,
  checkAuthorities,
  checkKeyFiles,
  checkDatabaseFiles,
  checkMailTemplates,
]

/** For messages about what a reload cannot change. Routes, upstreams and cases are many, and all can be reloaded. */
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

/** libuv's default. An operator who sets UV_THREADPOOL_SIZE sets `hashing.concurrency` too. */
const LIBUV_THREADS = 4

/** Defaults that the schema cannot express. */
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
    auth: { ...auth, hashing: { ...auth.hashing, concurrency } },
    routes: nameRoutes(routes),
    ...usableMail(mail),
    ...(events === undefined || events.url === '' ? {} : { events }),
  }
}

/** Without a server the section is as if it were omitted; with one, the rules have seen to the sender. */
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
 * One per core of the process. But hashes share libuv's threads with signature checks and name look-ups, and must
 * leave two of them, or every request would wait behind a login.
 */
function hashConcurrency(cores: number): number {
  return Math.max(1, Math.min(Math.floor(cores), LIBUV_THREADS - 2))
}

/**
 * Names the routes that have none: logs and metrics need one.
 * `/api/v1/courses/:id` → `api-v1-courses-id`; numbered if that is taken, `root` if nothing is left of the path.
 */
function nameRoutes<Route extends { name?: string; path: string }>(
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
