// Explains a storage failure to the operator: the database, the reason, and what to check.
import type { Config } from '../config/sections/schema.ts'
import { StorageError } from '../storage/database.ts'

/**
 * Converts a StorageError to an error with a message for the operator. The message contains no user and no password.
 * Any other error is returned unchanged.
 */
export function inPlainWords(error: unknown, storage: Config['storage'], file: string): unknown {
  if (!(error instanceof StorageError)) return error
  const { code = '', message } = error
  // These SQLSTATE codes mean an undefined table and an undefined column.
  if (code === '42P01' || code === '42703') {
    return new Error(`the database is not migrated to this version. Run peage migrate -c ${file} first.`)
  }
  const reason = message.replace(/^database: /, '')
  if (storage.postgres === '') {
    return new Error(`the embedded database failed (${reason}). Check storage.data_dir in ${file}.`)
  }
  const advice = adviceFor(code || reason, file)
  return new Error(`the database ${placeOf(storage.postgres)} failed (${reason}). ${advice}.`)
}

/**
 * @param failure the code of the error, or its message if there is no code; if the server responded, the code is an
 *   SQLSTATE
 */
function adviceFor(failure: string, file: string): string {
  const key = `storage.postgres in ${file}`
  if (/^28...$/.test(failure)) return `Check the user, the password and sslmode of ${key}, and pg_hba.conf`
  if (failure === '3D000') return `Create that database, or correct its name in ${key}`
  if (failure === '25006') return `Set ${key} to the primary, which accepts writes`
  if (failure === '42501')
    return `Make the user of ${key} the owner of the database, or grant it the right to create tables`
  if (failure.startsWith('server_encoding is'))
    return `Create a database with encoding 'UTF8' and template template0, and set it in ${key}`
  if (failure.startsWith('default_transaction_isolation is'))
    return `For the user of ${key}, run alter role … set default_transaction_isolation = 'read committed'`
  if (failure.startsWith('DateStyle is'))
    return `For the user of ${key}, run alter role … set DateStyle = 'ISO'`
  if (/ENOTFOUND|EAI_AGAIN/.test(failure)) return `Check the host in ${key}, and the DNS of this machine`
  if (/SSL|TLS|certificate/.test(failure))
    return `Check sslmode and sslrootcert of ${key}, and the server's certificate`
  return `Check that the server is running, and that ${key} is correct`
}

/**
 * Returns `host:port/name`, without user and password. If the query string contains a host or port, the driver uses
 * that value, so the function returns it.
 */
function placeOf(address: string): string {
  const { hostname, port, pathname, searchParams } = new URL(address)
  const host = searchParams.get('host') ?? (hostname || 'localhost')
  return `${host}:${searchParams.get('port') ?? (port || 5432)}${pathname}`
}
