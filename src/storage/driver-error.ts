// Converts the error of a driver into a StorageError that contains no bound values and no secrets.
import { StorageError } from './database.ts'

/**
 * The SQLSTATE classes whose messages never contain a bound value. At most, the messages contain names, for example of
 * a column or of the server. The classes are, in this order: connection, unsupported feature, transaction state,
 * authorization, catalog, schema, rollback, syntax, resources, limits, object state, and operator.
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
 * Converts the error of a driver. The error is not attached as the cause, because causes are logged and the error
 * contains the bound values (`detail`, `where`, PGlite's `params`).
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
  // Codes like EPIPE look like a SQLSTATE, but come from Node, not from the server.
  return typeof code === 'string' && /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Adds the code to the text. If a name has several addresses (for example `localhost`) and all connections fail, Node's
 * error has an empty message. Only its code then describes the failure.
 */
function withSystemCode(text: string, code: unknown): string {
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}
