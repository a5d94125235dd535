// From the file that ops wrote to the configuration that the gateway runs on, or to all that is wrong with it.
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { DecodeUnsafe } from 'typebox/value'
import { checkCertificate } from './certificate.ts'
import { nameRoutes } from './default-names.ts'
import { readDocument } from './document.ts'
import { interpolate, reasonOf } from './interpolate.ts'
import { type Fault, type Problem, problemsOf } from './problem.ts'
import { checkRules } from './rules.ts'
import { type Config, type Decoded, schema } from './schema.ts'
import { checkShape } from './shape.ts'
import { checkAuthorities } from './upstream-tls.ts'

export interface Source {
  /** As it was named on the command line: problems name it so. */
  readonly file: string
  /** Where `${NAME}` is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** `auth.hashing.concurrency` where the file does not say. */
  readonly cores?: number
  /** Reads the file itself and what `${file:PATH}` names. */
  readonly readFile?: (path: string) => string
  /** Also checks the files that the listener would be started with; whoever only uses the stores need not see them. */
  readonly toServe?: boolean
}

/** Reads, fills in, checks and decodes gateway.yaml. Never throws for what is in it; problems come in file order. */
export function loadConfig(source: Source): { config: Config } | { problems: Problem[] } {
  const { file, env, cores = availableParallelism(), readFile = path => readFileSync(path, 'utf8') } = source
  let text: string
  try {
    text = readFile(file).replace(/^\uFEFF/, '')
  } catch (error) {
    return { problems: problemsOf(file, '', [whole(`cannot be read (${reasonOf(error)})`)]) }
  }
  const sheet = readDocument(text, scalar => interpolate(scalar, { env, readFile }))
  if (Array.isArray(sheet)) return { problems: problemsOf(file, text, sheet) }
  if (typeof sheet.value !== 'object' || sheet.value === null || Array.isArray(sheet.value)) {
    const fault = sheet.value === null ? 'is empty' : 'must be a mapping'
    const faults = sheet.faults.length > 0 ? sheet.faults : [whole(`${fault}; ${EXPECTED}`)]
    return { problems: problemsOf(file, text, faults) }
  }
  const shape = checkShape(sheet)
  const faults = [...sheet.faults, ...shape.faults, ...checkRules(sheet, shape)]
  if (source.toServe) {
    faults.push(...checkCertificate(sheet, shape, readFile), ...checkAuthorities(sheet, shape, readFile))
  }
  if (faults.length > 0) return { problems: problemsOf(file, text, faults) }
  return { config: complete(DecodeUnsafe({}, schema, sheet.value) as Decoded, cores) }
}

/** Unless UV_THREADPOOL_SIZE says otherwise; whoever sets that sets `hashing.concurrency` too. */
const LIBUV_THREADS = 4

const EXPECTED = `its keys are ${Object.keys(schema.properties).join(', ')}`

function whole(message: string): Fault {
  return { offset: 0, path: '', message }
}

/** What no default in the schema can say. */
function complete({ auth, routes, ...rest }: Decoded, cores: number): Config {
  return {
    ...rest,
    auth: {
      ...auth,
      hashing: { ...auth.hashing, concurrency: auth.hashing.concurrency ?? hashesAtOnce(cores) },
    },
    routes: nameRoutes(routes),
  }
}

/**
 * As many as there are cores; but hashes share libuv's threads with signature checks and look-ups of names, and
 * must leave it two, or every request would wait behind a login.
 */
function hashesAtOnce(cores: number): number {
  return Math.min(cores, LIBUV_THREADS - 2)
}
