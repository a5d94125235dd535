// Tests that the drivers of Postgres and Redis correctly parse the addresses that the configuration accepts.
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { configOf } from '../reading.ts'

const postgresOf = (url: string) => configOf('storage: { postgres: "${URL}" }', { URL: url }).storage.postgres

describe('storage.postgres', () => {
  it.each([
    ['postgres://u:p%25s%2F%23%22@h:6000/d', ['u', 'p%s/#"', 'h', 6000, 'd']],
    ['postgres://u:p@s:s@h/d', ['u', 'p@s:s', 'h', 5432, 'd']],
    ['postgres://u%C3%A9:é@[::1]/d', ['ué', 'é', '::1', 5432, 'd']],
    ['postgres://u@/d?host=/run/postgresql', ['u', null, '/run/postgresql', 5432, 'd']],
    ['postgres://u:p%40@/d?host=%2Frun%2Fpostgresql', ['u', 'p@', '/run/postgresql', 5432, 'd']],
    ['postgres://u@:6000/d?host=/run/postgresql', ['u', null, '/run/postgresql', 6000, 'd']],
    ['postgres://u@/d?host=/run/postgresql&port=6001', ['u', null, '/run/postgresql', 6001, 'd']],
    ['postgres:///d?host=/run/postgresql&user=u', ['u', null, '/run/postgresql', 5432, 'd']],
    ['postgres://u@%2Frun%2Fpostgresql/d', ['u', null, '/run/postgresql', 5432, 'd']],
    ['postgres://u@/d?host=db.internal', ['u', null, 'db.internal', 5432, 'd']],
  ])('the driver parses the address %s correctly', (url, read) => {
    const client = new Client({ connectionString: postgresOf(url) })
    expect([client.user, client.password, client.host, client.port, client.database]).toEqual(read)
  })
})

describe('storage.redis', () => {
  it.each([
    ['redis://:p%25s%2F%23%22@h:6000/2', ['', 'p%s/#"', 'h', 6000, 2]],
    ['redis://u:p@s:s@h', ['u', 'p@s:s', 'h', 6379, 0]],
    ['redis://h?db=3', [null, null, 'h', 6379, 3]],
  ])('the driver parses the address %s correctly', (url, read) => {
    const address = configOf('storage: { redis: "${URL}" }', { URL: url }).storage.redis as string
    const { username, password, host, port, db } = new Redis(address, { lazyConnect: true }).options
    expect([username, password, host, port, db]).toEqual(read)
  })
})
