// Addresses of Postgres and Redis: what `check` accepts is what the drivers read, and each refusal says what to write.
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const percent = 'has a % that begins no escape such as %2F; percent-encode it as %25'
const hash = 'has a # that is not percent-encoded; percent-encode it as %23'
const quote = 'has a quotation mark in user or password; percent-encode it (" is %22 and \' is %27)'
const space = 'has white space; percent-encode it (a space is %20)'
const slash = 'has a / or a ? in user or password; percent-encode it (/ is %2F and ? is %3F)'
const port = 'must have a port of 1 to 65535'

const places = [
  ['storage: { postgres: "${URL}" }', '1:22  storage.postgres', 'postgres'],
  [
    'storage: { postgres: "postgres://h", postgres_listen: "${URL}" }',
    '1:55  storage.postgres_listen',
    'postgresql',
  ],
  ['storage: { redis: "${URL}" }', '1:19  storage.redis', 'redis'],
  ['storage: { redis: { cluster: [a, "${URL}"] } }', '1:34  storage.redis.cluster[1]', 'rediss'],
  ['storage: { redis: { sentinels: ["${URL}"], name: x } }', '1:33  storage.redis.sentinels[0]', 'redis'],
] as const

describe.each(places)('the address in %s', (yaml, place, scheme) => {
  it.each([
    ['u:p%ss@h', percent],
    [':p%ss@h', percent],
    ['u%:p@h', percent],
    ['u:p%@h', percent],
    ['u:p%2@h', percent],
    ['u:%ff@h', percent],
    ['u:p#s@h', hash],
    ['u:12#s@h', hash],
    ['u:p"s@h', quote],
    ["u:p's@h", quote],
    ['u:p s@h', space],
    ['u:p\ts@h', space],
    ['u:p/s@h', slash],
    ['u:12/s@h', slash],
    ['u:p?s@h', slash],
    ['u:12?s@h', slash],
    ['h:0', port],
    ['h:65536', port],
    ['h:x', port],
  ])('%j is refused with the characters to change, and without the password', (rest, message) => {
    expect(linesOf(yaml, { URL: `${scheme}://${rest}` })).toEqual([`${place}  ${message}`])
  })

  it('is refused with quotation marks around it', () => {
    expect(linesOf(yaml, { URL: `"${scheme}://u:p@h"` })).toEqual([
      `${place}  begins with a quotation mark; write the address without it`,
    ])
  })

  it('is refused with several hosts', () => {
    for (const hosts of ['a,b', 'u:p@a:1,b:2', 'u:p@a:1,b']) {
      expect(linesOf(yaml, { URL: `${scheme}://${hosts}` })).toEqual([
        expect.stringContaining(`${place}  must have one host; `),
      ])
    }
  })
})

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
  ])('%s is read by the driver as it was written', (url, read) => {
    const client = new Client({ connectionString: postgresOf(url) })
    expect([client.user, client.password, client.host, client.port, client.database]).toEqual(read)
  })

  it.each([
    ['postgres://u@/d', 'must have a host, as in '],
    ['postgres://u:p@/d?host=', 'must have a host, as in '],
    ['postgres://u@/run/postgresql/d', 'must have a host, as in '],
    ['postgres://:6000/d', 'must have a host, as in '],
    ['postgres://u@/d?host=a,b', 'must have one host; '],
    ['postgres://u@h/d?port=x', port],
    ['postgres://u@h/d?port=1,2', port],
    ['postgres://u@h/d%zz', percent],
    ['postgres://u@h/d?application_name=100%', percent],
    [
      'postgres://u@h/d?sslmode=verify-ca&uselibpqcompat=true',
      'must have sslrootcert, the file of the authority that sslmode=verify-ca checks',
    ],
  ])('%s is refused: the driver would throw, or connect elsewhere', (url, message) => {
    expect(linesOf('storage: { postgres: "${URL}" }', { URL: url })).toEqual([
      expect.stringContaining(`1:22  storage.postgres  ${message}`),
    ])
  })
})

describe('storage.redis', () => {
  it.each([
    ['redis://:p%25s%2F%23%22@h:6000/2', ['', 'p%s/#"', 'h', 6000, 2]],
    ['redis://u:p@s:s@h', ['u', 'p@s:s', 'h', 6379, 0]],
    ['redis://h?db=3', [null, null, 'h', 6379, 3]],
  ])('%s is read by the driver as it was written', (url, read) => {
    const address = configOf('storage: { redis: "${URL}" }', { URL: url }).storage.redis as string
    const { username, password, host, port, db } = new Redis(address, { lazyConnect: true }).options
    expect([username, password, host, port, db]).toEqual(read)
  })

  it('is refused with a database that is no number, in either place', () => {
    for (const url of ['redis://h/x', 'redis://h?db=x', 'redis://h/?db=-1']) {
      expect(linesOf('storage: { redis: "${URL}" }', { URL: url })).toEqual([
        '1:19  storage.redis  must have the number of a database after the /, or nothing',
      ])
    }
  })
})
