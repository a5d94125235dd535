// Tests that a request body that is too slow is refused, even if single bytes arrive regularly.
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RequestBody } from '../../src/http/request-body.ts'
import type { Refusal } from '../../src/refusals/refusal.ts'

describe('a request body', () => {
  let server: Server
  let client: Socket

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(async () => {
    vi.useRealTimers()
    client.destroy()
    await new Promise(resolve => server.close(resolve))
  })

  /**
   * Starts a request. Returns an object whose properties are kept up to date: the number of bytes read so far, and the
   * error, if any.
   */
  async function receive(limits: { idleTimeoutMs: number; totalTimeoutMs?: number }, isRead = true) {
    const received = { bytes: 0, failure: undefined as Refusal | undefined }
    const begun = new Promise<void>(resolve => {
      server = createServer(request => {
        const body = new RequestBody(request, { maxBytes: undefined, ...limits })
        body.on('error', failure => {
          received.failure = failure as Refusal
        })
        if (isRead) body.on('data', (chunk: Buffer) => (received.bytes += chunk.length))
        resolve()
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
    await begun
    return received
  }

  /** Sends `bytes` bytes every 5 s, for `forMs` milliseconds in total. */
  async function drip(received: { bytes: number }, bytes: number, forMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < forMs; passedMs += 5_000) {
      const before = received.bytes
      client.write('a'.repeat(bytes))
      await expect.poll(() => received.bytes).toBe(before + bytes)
      vi.advanceTimersByTime(5_000)
    }
  }

  it('is refused if less than 1 KiB arrives in 30 s', async () => {
    const received = await receive({ idleTimeoutMs: 30_000 })
    await drip(received, 170, 25_000)
    expect(received.failure).toBeUndefined()
    await drip(received, 170, 5_000)
    await expect.poll(() => received.failure?.code).toBe('request_invalid')
    expect(received.failure?.response('fr').fields).toContain('connection')
  })

  it('is not refused if 1 KiB arrives in 30 s', async () => {
    const received = await receive({ idleTimeoutMs: 30_000 })
    await drip(received, 171, 120_000)
    expect(received.failure).toBeUndefined()
  })

  it('is refused after 30 s with less than 1 KiB, even if it was fast before', async () => {
    const received = await receive({ idleTimeoutMs: 30_000 })
    await drip(received, 10_000, 60_000)
    await drip(received, 1, 30_000)
    await expect.poll(() => received.failure?.code).toBe('request_invalid')
  })

  it('may be slow for longer than 30 s if `body_idle` is longer', async () => {
    const received = await receive({ idleTimeoutMs: 90_000 })
    await drip(received, 1, 85_000)
    expect(received.failure).toBeUndefined()
    await drip(received, 1, 5_000)
    await expect.poll(() => received.failure?.code).toBe('request_invalid')
  })

  it('is not refused while the gateway itself does not read it', async () => {
    const received = await receive({ idleTimeoutMs: 30_000 }, false)
    client.write('a')
    vi.advanceTimersByTime(120_000)
    await new Promise(resolve => setImmediate(resolve))
    expect(received.failure).toBeUndefined()
  })
})
