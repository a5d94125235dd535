// Runs test suites of `peage users` directly on a database, and through the admin listener of a running gateway.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { createPasswords } from '../../src/accounts/password.ts'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { type RunningServer, startServer } from '../../src/server/start-server.ts'
import { openStorage, type Storage } from '../../src/storage/open.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { makeDatabase } from '../support/embedded.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { describeOverPlaces, folder, type Place, peage, writeConfiguration } from './users-setup.ts'

export const token = 'a-token-for-operators-0123456789'

export interface Gateway {
  server: RunningServer
  backing: Storage
}

/**
 * Starts a gateway inside the test process. The gateway locks the data folder, so commands cannot open the folder.
 */
export async function startOn(cwd: string, admin: string): Promise<Gateway> {
  const file = writeConfiguration(cwd, {
    name: 'running.yaml',
    admin: `server: { listen: '127.0.0.1:0' }\n${admin}`,
  })
  const loaded = loadConfig({ file: join(cwd, file), env: {} })
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  await makeDatabase(join(cwd, 'data'))
  let backing: Storage | undefined
  const server = await startServer({
    config: loaded.config,
    clock: systemClock,
    logger: await createLogger({ level: 'silent', requests: false }, process.stdout),
    open: async (...parts) => {
      backing = await openStorage(...parts)
      return backing
    },
  })
  return { server, backing: backing as unknown as Storage }
}

/**
 * Returns a `Place` with a running gateway. The gateway has locked the data folder, so commands call its admin API.
 */
export function gatewayPlace(): Place & { gateway(): Gateway } {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', token: ${token} }`)
    const { host } = new URL(String(gateway.server.adminAddress))
    writeConfiguration(cwd, { admin: `admin: { listen: '${host}', token: ${token} }` })
  })
  afterAll(() => gateway?.server.stop())
  return {
    cwd,
    configuration: () => ({}),
    gateway: () => gateway,
    operator: 'token',
    run: (words, stdin, onError) => peage(cwd, words, stdin, onError),
    users: (words, stdin, onError) => peage(cwd, ['users', ...words], stdin, onError),
    inside: work => work(gateway.backing.database),
  }
}

interface Door extends Place {
  /** Creates a user with the password `password` and the given number of sessions. */
  newUser(more?: { sessions?: number }): Promise<{ id: number; email: string }>
}

/** Runs one suite several times: directly on each kind of database, and through a gateway. */
export function describeOverDoors(title: string, suite: (door: Door) => void): void {
  describeOverPlaces(title, place => suite(doorOf(place)))
  describe(`${title} (through a running gateway)`, () => suite(doorOf(gatewayPlace())))
}

export const password = 'un mot de passe'
export const passwords = createPasswords({ concurrency: 1, queue: 0, wait: 0 })
/** The hash is computed only once and used for all users, because hashing is slow. */
const passwordHash = await passwords.hash(password)

function doorOf(place: Place): Door {
  let made = 0
  return {
    ...place,
    async newUser({ sessions = 0 } = {}) {
      const email = `user${++made}@example.com`
      const id = await place.inside(async database => {
        const created = await createUserStore(database).create(email, passwordHash)
        if (created.outcome !== 'created') return expect.unreachable()
        const store = createSessionStore(database)
        const expiresAt = new Date(Date.now() + 3_600_000)
        for (let i = 0; i < sessions; i += 1)
          await store.create(created.id, 0, storedToken(`${email}.${i}`, expiresAt), signIn())
        return created.id
      })
      return { id, email }
    },
  }
}
