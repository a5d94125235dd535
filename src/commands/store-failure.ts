// Says in plain words where the database is that failed, why it did, and what to look at.

import type { Config } from '../config/schema/schema.ts'
import { StorageError } from '../storage/database.ts'

/**
 * @param storage what names the database @param file the configuration, as it was named
 * @returns an error for operators, without user and password; what is no failure of the store comes back as it is
 */
export function inPlainWords(error: unknown, storage: Config['storage'], file: string): unknown {
  if (!(error instanceof StorageError)) return error
  const { code = '', message } = error
  // A table or a column that is not there.
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

/** By SQLSTATE where the server answered with one, else by what was said. */
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
    when: /^42501$/,
    advice: file =>
      `give the user of storage.postgres in ${file} the database, or the rights to create in it`,
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

/** `host:port/name`, as the driver takes it of the address, without user and password. */
function placeOf(address: string): string {
  const { hostname, port, pathname, searchParams } = new URL(address)
  const host = searchParams.get('host') ?? (hostname || 'localhost')
  // A `/` in a password that is not encoded ends the host there, and the rest of the password is in the path.
  const name = pathname.includes('@') ? '' : pathname
  return `${host}:${searchParams.get('port') ?? (port || 5432)}${name}`
}
