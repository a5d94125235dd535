// Creates receivers and senders. Each sender has its own DNS stub. Receivers and DNS stubs are closed after each test.
import type { RequestListener } from 'node:http'
import { afterEach } from 'vitest'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { createSender, type SenderOptions } from '../../../src/webhooks/sending/send.ts'
import { receivers } from '../../support/certificates.ts'
import { type DnsAnswer, startDnsStub } from '../../support/dns-stub.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'

export const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

/** Starts a receiver that listens only on 127.0.0.1. */
export async function receiver(answer: RequestListener, certificate = receivers): Promise<Receiver> {
  const started = await startReceiver(certificate, answer, '127.0.0.1')
  open.push(started)
  return started
}

/**
 * @param names the records of the name server
 * @param options the options of the sender; private addresses are allowed by default
 */
export async function senderOver(names: Record<string, DnsAnswer>, options: Partial<SenderOptions> = {}) {
  const stub = await startDnsStub(name => names[name] ?? 'nxdomain')
  open.push(stub)
  const resolve = createResolver({ allowPrivate: false, servers: [stub.address] })
  const send = createSender({ resolve, allowPrivate: true, timeoutMs: 5_000, ca: receivers.cert, ...options })
  return (url: string, signal?: AbortSignal) =>
    send({ url, headers: { 'webhook-id': 'msg_1' }, body: '{"a":"é"}', ...(signal && { signal }) })
}

export const loopback = (...names: string[]) => Object.fromEntries(names.map(name => [name, ['127.0.0.1']]))
/** Responds with a 200 and an empty body. */
export const empty: RequestListener = (_, response) => response.end()
