// Sends deliveries to the webhook URLs of the corpus. A DNS stub resolves the names. The TLS receivers are hostile.
import type { RequestListener, ServerResponse } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { parseWebhookUrl } from '../../../src/webhooks/address/webhook-url.ts'
import { corpus } from '../../security/corpus.ts'
import { courses, expired, first, receivers } from '../../support/certificates.ts'
import type { DnsAnswer } from '../../support/dns-stub.ts'
import { empty, loopback, receiver, senderOver } from './sending.ts'

describe('the corpus of webhook URLs', () => {
  const inside: Record<string, DnsAnswer> = {
    metadata: ['169.254.169.254'],
    'kubernetes.default.svc': ['10.96.0.1'],
    redis: ['172.17.0.2', '64:ff9b::10.0.0.1'],
    'foo.internal': ['fd00:ec2::254'],
    'foo.corp': ['192.168.1.1'],
    '127.0.0.1.nip.io': ['127.0.0.1'],
    '10-0-0-1.sslip.io': ['10.0.0.1'],
    'multi.test': ['93.184.216.34', '127.0.0.1'],
  }
  const nowhere = ['-bad.example.com', 'nxdomain.test']
  const hostile = ['redir.test', 'slow.test', 'big.test', 'badcert.test']
  const urls = corpus.webhook_urls.filter(({ stage }) => stage === 'delivery').map(({ url }) => String(url))
  const hostOf = (url: string) => new URL(url).hostname

  it('contains only URLs that are tested here', () => {
    expect(urls.map(hostOf).sort()).toEqual([...Object.keys(inside), ...nowhere, ...hostile].sort())
  })

  it.each(urls.filter(url => hostOf(url) in inside))(
    '%s can be registered, but receives nothing',
    async url => {
      const send = await senderOver(inside, { allowPrivate: false })
      expect(parseWebhookUrl(url, { allowPrivate: false })).not.toBe('invalid')
      expect(await send(url)).toMatchObject({ kind: 'failed', reason: 'address' })
    },
  )

  it.each(urls.filter(url => nowhere.includes(hostOf(url))))(
    '%s can be registered, but its name cannot be resolved',
    async url => {
      const send = await senderOver({}, { allowPrivate: false })
      expect(parseWebhookUrl(url, { allowPrivate: false })).not.toBe('invalid')
      expect(await send(url)).toMatchObject({ kind: 'failed', reason: 'unresolved' })
    },
  )

  it.each(corpus.webhook_urls.filter(({ stage, expect }) => stage === 'save' && expect === 'reject'))(
    'even if a URL that cannot be registered is stored, it receives nothing: $id',
    async ({ url }) => {
      const send = await senderOver({}, { allowPrivate: false })
      expect(await send(url as string)).toMatchObject({ kind: 'failed', reason: 'address' })
    },
  )

  it('a redirect of redir.test counts as a response and is not followed', async () => {
    const elsewhere = await receiver(empty)
    const target = await receiver((_, response) => {
      response.writeHead(302, { location: `https://hooks.test:${elsewhere.port}/` }).end()
    })
    const send = await senderOver(loopback('redir.test', 'hooks.test'))
    expect(await send(`https://redir.test:${target.port}/`)).toEqual({ kind: 'answered', status: 302 })
    expect([target.connections, elsewhere.connections]).toEqual([1, 0])
  })

  it('a response of 10 GiB from big.test is read only in part, and its status code is used', async () => {
    let written = 0
    const chunk = Buffer.alloc(64 * 1024)
    const target = await receiver((_, response) => {
      response.writeHead(200, { 'content-length': 10 * 1024 ** 3 })
      const more = () => {
        do written += chunk.length
        while (!response.destroyed && response.write(chunk))
      }
      response.on('drain', more).on('error', () => {})
      more()
    })
    const send = await senderOver(loopback('big.test'))
    expect(await send(`https://big.test:${target.port}/`)).toEqual({ kind: 'answered', status: 200 })
    await expect.poll(() => target.open).toBe(0)
    // The limit includes the socket buffers of sender and receiver.
    expect(written).toBeLessThan(16 * 1024 ** 2)
  })

  it.each<[string, typeof receivers, string | undefined]>([
    ['self-signed', receivers, first.cert],
    ['not trusted', receivers, undefined],
    ['for another host', courses, courses.cert],
    ['expired', expired, expired.cert],
  ])(
    'if the certificate of badcert.test is %s, the connection ends before anything is sent',
    async (_, certificate, ca) => {
      let requests = 0
      const target = await receiver((_, response) => {
        requests += 1
        response.end()
      }, certificate)
      const names = loopback('badcert.test', 'hooks.test')
      const send = await senderOver(names, { ca })
      const host = certificate === receivers ? 'hooks.test' : 'badcert.test'
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
      try {
        expect(await send(`https://${host}:${target.port}/`)).toMatchObject({ kind: 'failed', reason: 'tls' })
      } finally {
        vi.unstubAllEnvs()
      }
      expect(requests).toBe(0)
      await expect.poll(() => target.open).toBe(0)
    },
  )

  const trickle = (response: ServerResponse, bytes: string) => {
    const timer = setInterval(() => response.socket?.write(bytes), 20)
    response.socket?.on('error', () => {}).on('close', () => clearInterval(timer))
  }
  it.each<[string, RequestListener]>([
    ['never responds', () => {}],
    [
      'never ends its head',
      (_, response) => {
        response.socket?.write('HTTP/1.1 200 OK\r\n')
        trickle(response, 'x: y\r\n')
      },
    ],
    [
      'keeps sending interim responses',
      (_, response) => trickle(response, 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    ],
    [
      'never ends its body',
      (_, response) => {
        response.writeHead(200)
        response.flushHeaders()
        trickle(response, '1\r\na\r\n')
      },
    ],
    [
      'sends nothing of its body',
      (_, response) => {
        response.writeHead(200, { 'content-length': 5 }).flushHeaders()
      },
    ],
  ])('the connection to slow.test is closed at the timeout if slow.test %s', async (_, answer) => {
    const target = await receiver(answer)
    const send = await senderOver(loopback('slow.test'), { timeoutMs: 300 })
    const begun = performance.now()
    const outcome = await send(`https://slow.test:${target.port}/`)
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timeout' })
    expect(performance.now() - begun).toBeLessThan(1_500)
    await expect.poll(() => target.open).toBe(0)
  })
})
