// Name resolution queries A and AAAA records, has a time limit and does not delay other work.
import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { type DnsAnswer, type DnsStub, type RecordType, startDnsStub } from '../../support/dns-stub.ts'

let stub: DnsStub | undefined

afterEach(async () => {
  await stub?.close()
  stub = undefined
})

async function resolverOver(answer: (name: string, type: RecordType) => DnsAnswer) {
  stub = await startDnsStub(answer)
  return createResolver({ allowPrivate: false, servers: [stub.address] })
}

describe('a name', () => {
  it('resolves to its IPv4 and IPv6 addresses', async () => {
    const resolve = await resolverOver(() => ['1.1.1.1', '8.8.8.8', '2606:4700::1111'])
    expect(await resolve('hooks.test')).toEqual(['1.1.1.1', '8.8.8.8', '2606:4700::1111'])
    expect(stub?.asked.map(({ name, type }) => `${name} ${type}`).sort()).toEqual([
      'hooks.test A',
      'hooks.test AAAA',
    ])
  })

  it.each<[string, Record<RecordType, DnsAnswer>, readonly string[] | 'unresolved']>([
    ['only IPv4', { A: ['1.1.1.1'], AAAA: [] }, ['1.1.1.1']],
    ['only IPv6', { A: [], AAAA: ['2606:4700::1111'] }, ['2606:4700::1111']],
    ['IPv4 and an error', { A: ['1.1.1.1'], AAAA: 'nxdomain' }, ['1.1.1.1']],
    ['IPv4 and no response', { A: ['1.1.1.1'], AAAA: 'silent' }, ['1.1.1.1']],
    ['no addresses', { A: [], AAAA: [] }, 'unresolved'],
    ['an NXDOMAIN response', { A: 'nxdomain', AAAA: 'nxdomain' }, 'unresolved'],
  ])('with %s resolves to the received addresses, if any', async (_, answers, expected) => {
    const resolve = await resolverOver((_name, type) => answers[type])
    expect(await resolve('hooks.test')).toEqual(expected)
  })

  it('is resolved again each time, so that a change of its addresses takes effect', async () => {
    let last = 0
    const resolve = await resolverOver(() => [`1.1.1.${++last}`])
    const [first, second] = [await resolve('hooks.test'), await resolve('hooks.test')]
    expect(first).not.toEqual(second)
  })

  it('resolves to loopback without a query if it is localhost or a subdomain of localhost', async () => {
    const resolve = await resolverOver(() => ['1.1.1.1'])
    expect(await resolve('localhost')).toEqual(['127.0.0.1', '::1'])
    expect(await resolve('a.localhost')).toEqual(['127.0.0.1', '::1'])
    expect(stub?.asked).toEqual([])
  })

  it.each(['', ' ', '-', 'a b', 'é', '%', 'a'.repeat(300), '1.2.3', '*'])(
    'is unresolved if it is not a valid name: "%s"',
    async name => {
      const resolve = await resolverOver(() => 'nxdomain')
      expect(await resolve(name)).toBe('unresolved')
    },
  )

  it('is unresolved after 2 s if the name server is silent, and does not block the thread pool', async () => {
    const resolve = await resolverOver(() => 'silent')
    const begun = performance.now()
    const waiting = Array.from({ length: 64 }, (_, index) => resolve(`hooks${index}.test`))
    await promisify(pbkdf2)('', '', 1, 32, 'sha256')
    const hashed = performance.now() - begun
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['unresolved']))
    expect(hashed).toBeLessThan(500)
    expect(performance.now() - begun).toBeLessThan(3_000)
  })
})

describe('with private networks allowed', () => {
  it('the system resolver is used', async () => {
    const resolve = createResolver({ allowPrivate: true })
    expect(await resolve('localhost')).toContain('127.0.0.1')
    expect(await resolve('a b')).toBe('unresolved')
  })
})
