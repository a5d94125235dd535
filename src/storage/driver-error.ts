// Converts a driver's error into a StorageError without bound values and secrets.
import { StorageError } from './database.ts'

/**
 * The SQLSTATE classes whose messages never contain a bound value. The messages contain at most names of the schema or
 * the server. The classes are, in this order: connection, unsupported feature, transaction state, authorization,
 * catalog, schema, rollback, syntax, resources, limits, object state, and operator.
 */
const MESSAGES_WITHOUT_VALUES = /^(08|0A|25|28|3D|3F|40|42|53|54|55|57)/

/** The properties that both drivers (pg and PGlite) set on errors of the server. */
interface ServerError {
  message?: unknown
  code?: unknown
  constraint?: unknown
  routine?: unknown
}

/**
 * Wraps a driver's error. The error object is not attached as the cause, because causes are logged. It contains the
 * bound values (`detail`, `where`, PGlite's `params`).
 */
export function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const { message, code, constraint, routine } = (
    typeof error === 'object' ? (error ?? {}) : {}
  ) as ServerError
  const text = typeof message === 'string' && message !== '' ? message : 'unknown error'
  const state = sqlState(code)
  if (state === undefined)
    return new StorageError(`database: ${withSystemCode(text, code)}`, undefined, undefined)
  if (MESSAGES_WITHOUT_VALUES.test(state)) {
    return new StorageError(`database: ${text} (${state})`, state, undefined)
  }
  const about = [constraint, routine].find(name => typeof name === 'string' && name !== '')
  return new StorageError(`database: error ${state}${about ? ` (${about})` : ''}`, state, undefined)
}

function sqlState(code: unknown): string | undefined {
  // Codes like EPIPE come from Node, not from the server.
  return typeof code === 'string' && /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Adds the code to the text. An error for several addresses (`localhost`) has an empty message, and only its code
 * describes it.
 */
function withSystemCode(text: string, code: unknown): string {
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}
