// Converts a driver's error into a StorageError that carries no bound value and no secret.
import { StorageError } from './database.ts'

/**
 * SQLSTATE classes whose messages name objects of the schema or the server, never a bound value: connection,
 * transaction state, authorisation, catalogue, rollback, syntax, resources, limits, state, operator.
 */
const MESSAGES_WITHOUT_VALUES = /^(08|0A|25|28|3D|3F|40|42|53|54|55|57)/

/** The properties that both drivers (pg, PGlite) set on errors reported by the server. */
interface ServerError {
  message?: unknown
  code?: unknown
  constraint?: unknown
  routine?: unknown
}

/**
 * Wraps a driver's error. The driver's error object is not attached as the cause: it holds the bound values
 * (`detail`, `where`, PGlite's `params`), and causes are logged.
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
  if (MESSAGES_WITHOUT_VALUES.test(state)) {
    return new StorageError(`database: ${text} (${state})`, state, undefined)
  }
  const about = [constraint, routine].find(name => typeof name === 'string' && name !== '')
  return new StorageError(`database: error ${state}${about ? ` (${about})` : ''}`, state, undefined)
}

function sqlState(code: unknown): string | undefined {
  // EPIPE and the like are Node's codes, not the server's.
  return typeof code === 'string' && /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** An error over several addresses (`localhost`) has an empty message; only its code describes it. */
function withSystemCode(text: string, code: unknown): string {
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}
