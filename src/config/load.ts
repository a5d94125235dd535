// From the file that ops wrote to the configuration that the gateway runs on, or to all that is wrong with it.
import { availableParallelism } from 'node:os'
import { DecodeUnsafe } from 'typebox/value'
import { nameRoutes } from './default-names.ts'
import { locateDiagnostics, type Problems } from './diagnostics.ts'
import { appendToPointer } from './pointer.ts'
import type { Position } from './position.ts'
import { checkRules } from './rules/check-rules.ts'
import { checkDatabaseFiles } from './rules/database-files.ts'
import { checkKeyFiles } from './rules/key-files.ts'
import { checkCertificate } from './rules/tls.ts'
import { checkAuthorities } from './rules/upstream-tls.ts'
import { checkWarnings } from './rules/warnings.ts'
import { type Config, type DecodedConfig, schema } from './schema/schema.ts'
import { type LocatedCase, locateCases } from './test-cases.ts'
import { createValidator } from './validate.ts'
import { readLimited } from './yaml/read-file.ts'
import { readSource, type SourceFile } from './yaml/read-source.ts'
import { positionsOf } from './yaml/yaml-source.ts'

export interface ConfigSource extends SourceFile {
  /** What `server.workers: auto` is, and `auth.hashing.concurrency` where the file does not say. */
  readonly cores?: number
  /** Also checks the files that a gateway would be started with; whoever only uses the stores need not see them. */
  readonly toServe?: boolean
}

export interface LoadedConfig {
  readonly config: Config
  /** What it can be used with, though it is hardly what was meant. */
  readonly warnings: Problems
  /** `tests`, each with the place where it stands. */
  readonly cases: readonly LocatedCase[]
  /** Where the sections stand, and their keys, by JSON Pointer; line numbers. */
  readonly lines: Readonly<Record<string, number>>
}

/** Reads, fills in, checks and decodes gateway.yaml. Never throws for what is in it; problems come in file order. */
export function loadConfig(source: ConfigSource): LoadedConfig | Problems {
  const { file, cores = availableParallelism(), readFile = readLimited } = source
  const read = readSource(source, Object.keys(schema.properties))
  if ('problems' in read) return read
  const { yaml, text } = read
  const validation = validateConfig(yaml)
  const diagnostics = [...yaml.diagnostics, ...validation.diagnostics, ...checkRules(yaml, validation)]
  if (source.toServe) {
    diagnostics.push(...filesToServeWith.flatMap(check => check(yaml, validation, readFile)))
  }
  const warnings = locateDiagnostics(file, text, checkWarnings(yaml, validation))
  if (diagnostics.length > 0) return { ...locateDiagnostics(file, text, diagnostics), warnings }
  const config = applyComputedDefaults(DecodeUnsafe({}, schema, yaml.value) as DecodedConfig, cores)
  return {
    config,
    warnings,
    cases: locateCases(config.tests, file, yaml, text),
    lines: linesOf(config, positionsOf(yaml, text)),
  }
}

const validateConfig = createValidator(schema)

/** All that a gateway reads before it listens. */
const filesToServeWith = [checkCertificate, checkAuthorities, checkKeyFiles, checkDatabaseFiles]

/** Of what a reload may not take; routes, upstreams and cases are many, and are all taken. */
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

/** Unless UV_THREADPOOL_SIZE says otherwise; whoever sets that sets `hashing.concurrency` too. */
const LIBUV_THREADS = 4

/** What no default in the schema can say. */
function applyComputedDefaults({ server, auth, routes, ...rest }: DecodedConfig, cores: number): Config {
  const workers = server.workers === 'auto' ? cores : server.workers
  return {
    ...rest,
    server: { ...server, workers },
    auth: {
      ...auth,
      hashing: { ...auth.hashing, concurrency: auth.hashing.concurrency ?? hashConcurrency(cores / workers) },
    },
    routes: nameRoutes(routes),
  }
}

/**
 * As many as the process has cores; but hashes share libuv's threads with signature checks and look-ups of names, and
 * must leave it two, or every request would wait behind a login.
 */
function hashConcurrency(cores: number): number {
  return Math.max(1, Math.min(Math.floor(cores), LIBUV_THREADS - 2))
}
