// The gateway reaches a Postgres server at a Unix socket with every form of address that libpq accepts.
import { chmodSync } from 'node:fs'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { parsePostgres } from '../../../src/config/formats/store-addresses.ts'
import { openPostgres } from '../../../src/storage/postgres/postgres.ts'
import { postgresListener } from '../../../src/storage/postgres/postgres-listener.ts'
import { emptyFolder, runIn } from '../../commands/peage.ts'
import { writeConfiguration } from '../../commands/users-setup.ts'
import { type Server, startPostgres } from '../../support/servers.ts'
import { describeWithPostgresBinary } from '../../support/services.ts'

describeWithPostgresBinary('a Postgres server at a Unix socket', () => {
  const socketFolder = emptyFolder()
  const cwd = emptyFolder()
  let server: Server
  beforeAll(async () => {
    chmodSync(socketFolder, 0o777)
    server = await startPostgres(inject('postgresBin'), { socketFolder })
  })
  afterAll(() => server?.stop())

  it.each([
    (port: number) => `postgres://postgres@/postgres?host=${socketFolder}&port=${port}`,
    (port: number) => `postgres://postgres@:${port}/postgres?host=${socketFolder}`,
    (port: number) => `postgres://postgres@${encodeURIComponent(socketFolder)}:${port}/postgres`,
    (port: number) => `postgresql:///postgres?user=postgres&host=${socketFolder}&port=${port}`,
  ])('serves the pool, the listener and the migrations with address format %#', async addressAt => {
    const address = addressAt(server.port)
    const url = parsePostgres(address)
    const database = openPostgres({ url, maxConnections: 1, onError: () => {} })
    // A connection over a Unix socket has no client address.
    const [row] = await database.query('select inet_client_addr() is null as "isLocal"')
    await database.close()
    expect(row).toEqual({ isLocal: true })

    const states: string[] = []
    const listener = postgresListener(url)(['x'], {
      onNotification: () => {},
      onListening: () => states.push('listening'),
      onLost: () => states.push('lost'),
    })
    await expect.poll(() => states).toEqual(['listening'])
    await listener.close()

    writeConfiguration(cwd, { postgres: address })
    expect(await runIn(cwd, ['migrate'])).toMatchObject({ exit: 0 })
  })
})
