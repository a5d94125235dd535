// DNS rebinding reaches no private address. In this attack, a name has a public address during the check and a private
// address for the connection.
import { afterEach, describe, expect, it } from 'vitest'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { createSender, type SendOutcome } from '../../../src/webhooks/sending/send.ts'
import { receivers } from '../../support/certificates.ts'
import { type RecordType, startDnsStub } from '../../support/dns-stub.ts'
import { startReceiver } from '../../support/receiver.ts'

/** An unused address that looks public. It is in 2000::/3, and IANA has not allocated it. */
const nobodys = '3000::1'
const inside: Record<RecordType, string> = { A: '127.0.0.1', AAAA: '::1' }

const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

/** Makes `count` attempts, 100 at a time. @returns their outcomes and the number of connections to loopback */
async function tries(
  count: number,
  answer: (name: string, type: RecordType) => string,
  { allowPrivate = false, timeoutMs = 250 } = {},
) {
  const target = await startReceiver(receivers, (_, response) => response.end())
  const stub = await startDnsStub((name, type) => [answer(name, type)])
  open.push(target, stub)
  const resolve = createResolver({ allowPrivate: false, servers: [stub.address] })
  const send = createSender({ resolve, allowPrivate, timeoutMs, ca: receivers.cert })
  const outcomes: SendOutcome[] = []
  let next = 0
  const lane = async () => {
    for (let index = next++; index < count; index = next++) {
      const url = `https://name${index}.rebind.test:${target.port}/`
      outcomes.push(await send({ url, headers: {}, body: '{}' }))
    }
  }
  await Promise.all(Array.from({ length: 100 }, lane))
  const reasons = outcomes.map(outcome => (outcome.kind === 'failed' ? outcome.reason : 'answered'))
  const having = (...wanted: string[]) => reasons.filter(reason => wanted.includes(reason)).length
  return { having, asked: stub.asked.length, connections: target.connections }
}

describe('a name that flips from public to private', () => {
  it('between two lookups leads to no private address in 1,000 attempts', async () => {
    const seen = new Set<string>()
    const { having, asked, connections } = await tries(1_000, (name, type) => {
      if (seen.has(`${name} ${type}`)) return inside[type]
      seen.add(`${name} ${type}`)
      return nobodys
    })
    // Nearly all attempts passed the check. They went to the public address without a second lookup. On a busy machine,
    // the resolver may repeat a query if its response is late.
    expect(having('connection', 'timeout')).toBeGreaterThan(900)
    expect(asked).toBeLessThan(2_200)
    expect(having('connection', 'timeout', 'address')).toBe(1_000)
    expect(connections).toBe(0)
  })

  it('in every third query leads to no private address in 1,000 attempts', async () => {
    let questions = 0
    const { having, connections } = await tries(1_000, (_, type) =>
      ++questions % 3 === 0 ? inside[type] : nobodys,
    )
    expect(having('address')).toBeGreaterThan(100)
    expect(having('connection', 'timeout')).toBeGreaterThan(10)
    expect(having('address', 'connection', 'timeout', 'unresolved')).toBe(1_000)
    expect(connections).toBe(0)
  })

  it('leads to loopback if private addresses are allowed, which proves that the test counts connections', async () => {
    const { connections } = await tries(20, (_, type) => inside[type], {
      allowPrivate: true,
      timeoutMs: 10_000,
    })
    expect(connections).toBe(20)
  })
})
