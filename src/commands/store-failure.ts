// Explains a storage failure to the operator: the database, the reason, and what to check.
import type { Config } from '../config/sections/schema.ts'
import { StorageError } from '../storage/database.ts'

/** @returns an error for operators, without user and password; any other error is returned unchanged */
export function inPlainWords(error: unknown, storage: Config['storage'], file: string): unknown {
  if (!(error instanceof StorageError)) return error
  const { code = '', message } = error
  // SQLSTATE codes for an undefined table and an undefined column.
  if (code === '42P01' || code === '42703') {
    return new Error(`the database is not migrated to this version: run peage migrate -c ${file} first`)
  }
  const reason = message.replace(/^database: /, '')
  if (storage.postgres === '') {
    return new Error(`the embedded database failed (${reason}): check storage.data_dir in ${file}`)
  }
  const advice = adviceFor(code || reason, file)
  return new Error(`the database failed (${placeOf(storage.postgres)}: ${reason}): ${advice}`)
}

/** @param failure the error's code (an SQLSTATE if the server responded), otherwise its message */
function adviceFor(failure: string, file: string): string {
  const key = `storage.postgres in ${file}`
  if (/^28...$/.test(failure)) return `check the user, the password and sslmode of ${key}, and pg_hba.conf`
  if (failure === '3D000') return `create that database, or check its name in ${key}`
  if (failure === '25006') return `${key} must lead to a server that takes writes: the primary`
  if (failure === '42501') return `give the user of ${key} the database, or the rights to create in it`
  if (failure.startsWith('server_encoding is'))
    return `create a database with encoding 'UTF8' and template template0, and name it in ${key}`
  if (failure.startsWith('default_transaction_isolation is'))
    return `alter role … set default_transaction_isolation = 'read committed', for the user of ${key}`
  if (failure.startsWith('DateStyle is')) return `alter role … set DateStyle = 'ISO', for the user of ${key}`
  if (/ENOTFOUND|EAI_AGAIN/.test(failure))
    return `check the host in ${key}, and the name service of this machine`
  if (/SSL|TLS|certificate/.test(failure))
    return `check sslmode and sslrootcert of ${key}, and the server's certificate`
  return `check that it is up, and that ${key} is right`
}

/** Returns `host:port/name`, as the driver parses the address, without user and password. */
function placeOf(address: string): string {
  const { hostname, port, pathname, searchParams } = new URL(address)
  const host = searchParams.get('host') ?? (hostname || 'localhost')
  return `${host}:${searchParams.get('port') ?? (port || 5432)}${pathname}`
}
