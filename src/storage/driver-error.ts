// Turns what a driver threw into a StorageError that carries no value of a statement and no secret.
import { StorageError } from './database.ts'

/**
 * Classes of SQLSTATE whose messages name things of the schema or the server, never a bound value:
 * connection, transaction state, authorisation, catalogue, rollback, syntax, resources, limits, state, operator.
 */
const MESSAGES_WITHOUT_VALUES = new Set([
  '08',
  '0A',
  '25',
  '28',
  '3D',
  '3F',
  '40',
  '42',
  '53',
  '54',
  '55',
  '57',
])

/** What both drivers (pg, PGlite) hang on the errors that the server reports. */
interface ServerError {
  message?: unknown
  code?: unknown
  constraint?: unknown
  routine?: unknown
}

/**
 * Wraps a driver's error. The driver's own object is not kept as the cause: it holds the values that were
 * sent (`detail`, `where`, PGlite's `params`), and causes end up in logs.
 */
export function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const { message, code, constraint, routine } = (
    typeof error === 'object' ? (error ?? {}) : {}
  ) as ServerError
  const text = typeof message === 'string' && message !== '' ? message : 'unknown failure'
  const state = sqlState(code)
  if (state === undefined)
    return new StorageError(`database: ${withSystemCode(text, code)}`, undefined, undefined)
  if (MESSAGES_WITHOUT_VALUES.has(state.slice(0, 2))) {
    return new StorageError(`database: ${text} (${state})`, state, undefined)
  }
  const about = [constraint, routine].find(name => typeof name === 'string' && name !== '')
  return new StorageError(`database: error ${state}${about ? ` (${about})` : ''}`, state, undefined)
}

function sqlState(code: unknown): string | undefined {
  // EPIPE and the like are Node's, not the server's.
  return typeof code === 'string' && /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** A failure over several addresses (`localhost`) has an empty message and says what happened only in its code. */
function withSystemCode(text: string, code: unknown): string {
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}
