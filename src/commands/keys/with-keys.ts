// Gives commands access to the signing keys, in the database or in the files of `auth.keys`.
import { resolve } from 'node:path'
import type { Config } from '../../config/sections/schema.ts'
import { createKeyAdministration, type KeyAdministration } from '../../identity/keys/key-administration.ts'
import { propagationDelayMs } from '../../identity/keys/key-schedule.ts'
import { createKeyStore, privateJwks } from '../../identity/keys/key-store.ts'
import { readKeyFiles } from '../../identity/keys/signing-keys.ts'
import { type Resealed, reseal } from '../../identity/resealing.ts'
import { createSealedColumn } from '../../identity/sealed-column-store.ts'
import { openSealer } from '../../identity/sealer.ts'
import type { Database } from '../../storage/database.ts'
import { secretColumns } from '../../webhooks/webhook-secret.ts'
import type { Io } from '../io.ts'
import { readConfig } from '../read-config.ts'
import { unsupportedWhileRunning, withDatabase } from '../with-database.ts'
import type { ListedKey } from './print-keys.ts'

export type WithKeys = typeof withKeys

/**
 * Runs `work` on the keys in the database.
 * @throws CommanderError (exit code 2) if the configuration is invalid; otherwise an Error with a message for the
 *   operator
 */
export async function withKeys(
  io: Io,
  file: string,
  work: (keys: KeyAdministration) => Promise<void>,
): Promise<void> {
  const config = readConfig(io, file, io.stderr)
  if (config.auth.keys.length > 0) {
    throw new Error(
      `the signing keys are in files. Change auth.keys in ${file}; create a key file with peage keys generate --out FILE.`,
    )
  }
  await withDatabase(
    io,
    file,
    config,
    async database => work(await createAdministration(database, config)),
    unsupportedWhileRunning,
  )
}

/** Returns the keys that a gateway with this configuration uses to sign and verify. @throws the errors of `withKeys` */
export async function listKeys(io: Io, file: string): Promise<ListedKey[]> {
  const config = readConfig(io, file, io.stderr)
  const files = config.auth.keys
  if (files.length > 0) {
    const keys = await readKeyFiles(files.map(name => resolve(io.cwd, name)))
    return keys.map(({ kid, alg }, i) => ({
      kid,
      alg,
      state: i === 0 ? 'signs' : 'verifies',
      createdAt: null,
      signsFrom: null,
      signsAssertions: i === 0,
      retirableFrom: null,
      storedIn: files[i] ?? '',
    }))
  }
  const listed: ListedKey[] = []
  await withKeys(io, file, async keys => {
    for (const key of await keys.list()) listed.push({ ...key, storedIn: 'database' })
  })
  return listed
}

/**
 * Re-encrypts signing keys and webhook secrets. Webhook secrets are in the database even if the signing keys are in
 * files.
 * @throws the errors of `withKeys`
 */
export async function resealAll(
  io: Io,
  file: string,
  report: (keys: Resealed, webhooks: Resealed) => Promise<void>,
): Promise<void> {
  const config = readConfig(io, file, io.stderr)
  const sealer = await openSealer(config.auth)
  if (sealer === undefined) {
    throw new Error(
      `auth.key_secret is not set in ${file}. Set it first, because this command encrypts with it.`,
    )
  }
  const work = async (database: Database) => {
    const columns = secretColumns.map(column => createSealedColumn(database, column))
    const keys = await reseal([createSealedColumn(database, privateJwks)], sealer)
    await report(keys, await reseal(columns, sealer))
  }
  await withDatabase(io, file, config, work, unsupportedWhileRunning)
}

async function createAdministration(
  database: Database,
  { auth, routes }: Config,
): Promise<KeyAdministration> {
  return createKeyAdministration({
    store: createKeyStore(database),
    sealer: await openSealer(auth),
    // Only one process can have the embedded database open, so no gateway is running now. The new key can sign at once,
    // because no gateway must read it first.
    signingDelayMs: database.kind === 'embedded' ? 0 : propagationDelayMs,
    lifetimes: {
      maxTokenTtlMs: Math.max(auth.access_token_ttl, auth.refresh_token_ttl),
      usesAssertions: routes.some(route => route.identity_assertion),
    },
  })
}
