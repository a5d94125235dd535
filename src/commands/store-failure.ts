// Explains a storage failure to the operator: which database failed, why, and what to check.

import type { Config } from '../config/sections/schema.ts'
import { StorageError } from '../storage/database.ts'

/**
 * @param storage names the database @param file the configuration file, as named on the command line
 * @returns an error for operators, without user and password; any other error is returned unchanged
 */
export function inPlainWords(error: unknown, storage: Config['storage'], file: string): unknown {
  if (!(error instanceof StorageError)) return error
  const { code = '', message } = error
  // SQLSTATE: undefined table, undefined column.
  if (code === '42P01' || code === '42703') {
    return new Error(`the database is not migrated to this version: run peage migrate -c ${file} first`)
  }
  const reason = message.replace(/^database: /, '')
  if (storage.postgres === '') {
    return new Error(`the embedded database failed (${reason}): check storage.data_dir in ${file}`)
  }
  const { advice } = advices.find(({ when }) => when.test(code || reason)) ?? otherwise
  return new Error(`the database failed (${placeOf(storage.postgres)}: ${reason}): ${advice(file)}`)
}

/** Matched against the error's code (an SQLSTATE if the server responded), else against its message. */
const advices: readonly { when: RegExp; advice: (file: string) => string }[] = [
  {
    when: /^28...$/,
    advice: file =>
      `check the user, the password and sslmode of storage.postgres in ${file}, and pg_hba.conf`,
  },
  {
    when: /^3D000$/,
    advice: file => `create that database, or check its name in storage.postgres in ${file}`,
  },
  {
    when: /^25006$/,
    advice: file => `storage.postgres in ${file} must lead to a server that takes writes: the primary`,
  },
  {
    when: /^42501$/,
    advice: file =>
      `give the user of storage.postgres in ${file} the database, or the rights to create in it`,
  },
  {
    when: /^server_encoding is/,
    advice: file =>
      `create a database with encoding 'UTF8' and template template0, and name it in storage.postgres in ${file}`,
  },
  {
    when: /^default_transaction_isolation is/,
    advice: file =>
      `alter role … set default_transaction_isolation = 'read committed', for the user of storage.postgres in ${file}`,
  },
  {
    when: /^DateStyle is/,
    advice: file => `alter role … set DateStyle = 'ISO', for the user of storage.postgres in ${file}`,
  },
  {
    when: /ENOTFOUND|EAI_AGAIN/,
    advice: file => `check the host in storage.postgres in ${file}, and the name service of this machine`,
  },
  {
    when: /SSL|TLS|certificate/,
    advice: file =>
      `check sslmode and sslrootcert of storage.postgres in ${file}, and the server's certificate`,
  },
]

const otherwise = {
  advice: (file: string) => `check that it is up, and that storage.postgres in ${file} is right`,
}

/** `host:port/name`, as the driver parses the address, without user and password. */
function placeOf(address: string): string {
  const { hostname, port, pathname, searchParams } = new URL(address)
  const host = searchParams.get('host') ?? (hostname || 'localhost')
  return `${host}:${searchParams.get('port') ?? (port || 5432)}${pathname}`
}
