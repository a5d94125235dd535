// Name resolution: from every source, in bounded time, and without delaying other work.
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
  it('has the addresses of both kinds', async () => {
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
    ['IPv4 and silence', { A: ['1.1.1.1'], AAAA: 'silent' }, ['1.1.1.1']],
    ['nothing', { A: [], AAAA: [] }, 'unresolved'],
    ['no existence', { A: 'nxdomain', AAAA: 'nxdomain' }, 'unresolved'],
  ])('that has %s is told so', async (_, answers, expected) => {
    const resolve = await resolverOver((_name, type) => answers[type])
    expect(await resolve('hooks.test')).toEqual(expected)
  })

  it('is asked for anew each time, so that a change is seen', async () => {
    let last = 0
    const resolve = await resolverOver(() => [`1.1.1.${++last}`])
    const [first, second] = [await resolve('hooks.test'), await resolve('hooks.test')]
    expect(first).not.toEqual(second)
  })

  it('is loopback where it is localhost or under it, whatever a name server says', async () => {
    const resolve = await resolverOver(() => ['1.1.1.1'])
    expect(await resolve('localhost')).toEqual(['127.0.0.1', '::1'])
    expect(await resolve('a.localhost')).toEqual(['127.0.0.1', '::1'])
    expect(stub?.asked).toEqual([])
  })

  it.each(['', ' ', '-', 'a b', 'é', '%', 'a'.repeat(300), '1.2.3', '*'])(
    'is unresolved where it is none: "%s"',
    async name => {
      const resolve = await resolverOver(() => 'nxdomain')
      expect(await resolve(name)).toBe('unresolved')
    },
  )

  it('is unresolved after 2 s of silence, and stalls nothing that needs a thread of the pool', async () => {
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

describe('where private networks are allowed', () => {
  it('the system is asked', async () => {
    const resolve = createResolver({ allowPrivate: true })
    expect(await resolve('localhost')).toContain('127.0.0.1')
    expect(await resolve('a b')).toBe('unresolved')
  })
})
