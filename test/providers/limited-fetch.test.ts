import { createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLimitedFetch } from '../../src/providers/limited-fetch.ts'
import { type Issuer, paths, sendJson, startIssuer } from './issuer.ts'

let issuer: Issuer

beforeAll(async () => {
  issuer = await startIssuer([])
})
afterEach(() => issuer.responses.clear())
afterAll(() => issuer.close())

function open(issuerUrl = issuer.url) {
  const outcomes: string[] = []
  const onRequest = (outcome: string) => void outcomes.push(outcome)
  const { document, request } = createLimitedFetch({ issuer: issuerUrl, onRequest })
  return {
    outcomes,
    fetch: (url = issuer.url + paths.keys) => document(url, json => json),
    post: (url = issuer.url + paths.token) =>
      request(url, { method: 'POST', headers: {}, body: 'code=secret' }),
  }
}

const unavailable = (message: string) =>
  expect.objectContaining({ reason: 'provider_unavailable', message: expect.stringContaining(message) })

describe.concurrent('a request to a provider that never finishes', () => {
  it.each([
    ['accepts a connection, but never responds', () => {}],
    [
      'sends its body too slowly',
      (_: unknown, response: { write(text: string): void; on(event: 'close', f: () => void): void }) => {
        const timer = setInterval(() => response.write(' '), 100)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ])('ends after 5 s, if the provider %s', async (_, respond) => {
    const slow = await startIssuer([])
    slow.responses.set(paths.keys, respond as never)
    const { fetch, outcomes } = open(slow.url)
    const start = performance.now()
    await expect(fetch(slow.url + paths.keys)).rejects.toEqual(unavailable('no complete response within 5 s'))
    expect(performance.now() - start).toBeGreaterThan(4_900)
    expect(performance.now() - start).toBeLessThan(10_000)
    expect(outcomes).toEqual(['timeout'])
    await vi.waitUntil(() => slow.open() === 0, 10_000)
    await slow.close()
  })

  it('ends after 5 s, if the provider does not start TLS', async () => {
    const silent = createServer(socket => socket.resume())
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const { fetch, outcomes } = open(`https://127.0.0.1:${port}`)
    await expect(fetch(`https://127.0.0.1:${port}/keys`)).rejects.toEqual(unavailable('within 5 s'))
    expect(outcomes).toEqual(['timeout'])
    await new Promise(resolve => silent.close(resolve))
  })

  it('does not delay other requests to the same provider', async () => {
    const slow = await startIssuer([])
    slow.responses.set(paths.token, () => {})
    const { fetch, post } = open(slow.url)
    let ended = 0
    const hanging = Array.from({ length: 20 }, () =>
      post(slow.url + paths.token).catch(() => {
        ended += 1
      }),
    )
    await vi.waitUntil(() => slow.count(paths.token) === 20, 4_500)
    await fetch(slow.url + paths.keys)
    expect(ended).toBe(0)
    await slow.close()
    await Promise.all(hanging)
  })
})

describe('the size of a response', () => {
  const size = (bytes: number) => JSON.stringify({ text: 'a'.repeat(bytes - 11) })

  it('is at most 256 KiB', async () => {
    const { fetch, outcomes } = open()
    issuer.responses.set(paths.keys, (_, response) => response.end(size(256 * 1024)))
    expect(await fetch()).toHaveProperty('text')
    issuer.responses.set(paths.keys, (_, response) => response.end(size(256 * 1024 + 1)))
    await expect(fetch()).rejects.toEqual(unavailable('more than 256 KiB'))
    expect(outcomes).toEqual(['ok', 'too_large'])
  })

  it.each([
    ['10 MiB', Buffer.from(size(10 * 1024 * 1024)), {}],
    ['10 MiB in 10 KiB of gzip', gzipSync(size(10 * 1024 * 1024)), { 'content-encoding': 'gzip' }],
  ])('is too large with %s, for documents and for token responses', async (_, body, headers) => {
    const { fetch, post, outcomes } = open()
    for (const path of [paths.keys, paths.token])
      issuer.responses.set(path, (_, response) => response.writeHead(200, headers).end(body))
    await expect(fetch()).rejects.toEqual(unavailable('more than 256 KiB'))
    await expect(post()).rejects.toEqual(unavailable('more than 256 KiB'))
    expect(outcomes).toEqual(['too_large', 'too_large'])
    await expect.poll(issuer.open).toBe(0)
  })

  it('is measured after decompression', async () => {
    issuer.responses.set(paths.keys, (_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(size(1_000))),
    )
    expect(await open().fetch()).toHaveProperty('text')
  })
})

describe('a response of a provider', () => {
  it.each([301, 302, 303, 307, 308])(
    'with the redirect status %i is refused, and the redirect is not followed',
    async status => {
      const { fetch, post, outcomes } = open()
      for (const path of [paths.discovery, paths.token]) {
        issuer.responses.set(path, (_, response) =>
          response.writeHead(status, { location: issuer.url + paths.keys }).end(),
        )
      }
      const before = issuer.count(paths.keys)
      await expect(fetch(issuer.url + paths.discovery)).rejects.toEqual(unavailable(`status ${status}`))
      await expect(post()).rejects.toEqual(unavailable(`status ${status}`))
      expect(outcomes).toEqual(['redirect', 'redirect'])
      expect(issuer.count(paths.keys)).toBe(before)
    },
  )

  it('with the status 500 makes the provider unavailable', async () => {
    const { fetch, post, outcomes } = open()
    for (const path of [paths.keys, paths.token]) issuer.responses.set(path, sendJson({}, 500))
    await expect(fetch()).rejects.toEqual(unavailable('status 500'))
    await expect(post()).rejects.toEqual(unavailable('status 500'))
    expect(outcomes).toEqual(['http_error', 'http_error'])
  })

  it('with the status 404 causes an error from a document, but not from the token endpoint', async () => {
    const { fetch, post, outcomes } = open()
    for (const path of [paths.keys, paths.token]) issuer.responses.set(path, sendJson({}, 404))
    await expect(fetch()).rejects.toEqual(unavailable('status 404'))
    expect((await post()).status).toBe(404)
    expect(outcomes).toEqual(['http_error', 'http_error'])
  })

  it.each(['', 'text', '[]', 'null', '"text"', '{'])('with the body %j is not a JSON object', async body => {
    const { fetch, post, outcomes } = open()
    for (const path of [paths.keys, paths.token])
      issuer.responses.set(path, (_, response) => response.end(body))
    await expect(fetch()).rejects.toEqual(unavailable('not a JSON object'))
    await expect(post()).rejects.toEqual(unavailable('not a JSON object'))
    expect(outcomes).toEqual(['invalid', 'invalid'])
  })

  it('makes the provider unavailable if the response ends too early', async () => {
    const { fetch, outcomes } = open()
    issuer.responses.set(paths.keys, (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('{')
      setTimeout(() => response.destroy(), 50)
    })
    await expect(fetch()).rejects.toEqual(unavailable('no valid response'))
    expect(outcomes).toEqual(['network'])
  })
})

describe('the error of a request', () => {
  it('contains the error code of a failed connection, and the URL without its query', async () => {
    const closed = await startIssuer([])
    await closed.close()
    const { post } = open(closed.url)
    await expect(post(`${closed.url}/token?key=hidden`)).rejects.toHaveProperty(
      'message',
      `POST ${closed.url}/token: no valid response (ECONNREFUSED)`,
    )
  })

  it('contains the error code of an invalid certificate', async () => {
    const secure = await startIssuer([], { tls: true })
    await expect(open(secure.url).fetch(secure.url + paths.keys)).rejects.toEqual(
      unavailable('DEPTH_ZERO_SELF_SIGNED_CERT'),
    )
    await secure.close()
  })
})

describe('NODE_TLS_REJECT_UNAUTHORIZED=0', () => {
  it('does not disable the check of the provider’s certificate', async () => {
    const secure = await startIssuer([], { tls: true })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      await expect(open(secure.url).fetch(secure.url + paths.keys)).rejects.toEqual(
        unavailable('SELF_SIGNED'),
      )
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      await secure.close()
    }
  })
})

describe('a request over http', () => {
  it('is not sent for an issuer on https, not even to loopback', async () => {
    const { fetch, post, outcomes } = open('https://idp.example.com')
    const before = issuer.seen.length
    await expect(fetch()).rejects.toEqual(unavailable('only https is allowed'))
    await expect(post()).rejects.toEqual(unavailable('only https is allowed'))
    expect([issuer.seen.length, outcomes]).toEqual([before, []])
  })

  it('is not sent to another host than loopback, even if the issuer is on loopback', async () => {
    await expect(open().fetch('http://idp.example.com/keys')).rejects.toEqual(unavailable('only https'))
  })
})
