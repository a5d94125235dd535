// The gateway streams bodies in both directions at once, and never buffers a large body in memory.
import { createHash } from 'node:crypto'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ask, chunked, RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const mebibyte = 1024 * 1024

/** Returns a stream of this many bytes. The content is the same in each run, and is generated on demand. */
function noise(bytes: number): Readable {
  const block = createHash('sha512').update('noise').digest()
  const chunk = Buffer.alloc(65_536, block)
  let left = bytes
  return new Readable({
    read() {
      const size = Math.min(left, chunk.length)
      left -= size
      chunk.writeUInt32LE(left, 0)
      this.push(size === 0 ? null : Buffer.from(chunk.subarray(0, size)))
    },
  })
}

async function digest(stream: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

describe('streaming', () => {
  const at = journey(embeddedSetup)

  const send = (
    path: string,
    body: Readable | undefined,
    headers: Record<string, string> = {},
    method = 'POST',
  ) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const request = httpRequest(at.gateway.url + path, { method, headers })
      request.on('response', resolve).on('error', reject)
      if (body === undefined) request.end()
      else body.pipe(request)
    })

  it.each([
    ['with a declared length', { 'content-length': String(16 * mebibyte) } as Record<string, string>],
    ['chunked', {} as Record<string, string>],
  ])('bodies of 16 MiB arrive unchanged in both directions (%s)', async (_, headers) => {
    const seen: string[] = []
    at.upstream.answer = async (request, response) => {
      seen.push(await digest(request))
      response.writeHead(200, headers)
      noise(16 * mebibyte).pipe(response)
    }
    const response = await send('/public/x', noise(16 * mebibyte), headers)
    const expected = await digest(noise(16 * mebibyte))
    expect([await digest(response), ...seen]).toEqual([expected, expected])
    expect(response.headers['content-length']).toBe(headers['content-length'])
  })

  it('a slow client slows the upstream down, and the response is not buffered in memory', async () => {
    let written = 0
    at.upstream.answer = (_, response) => {
      const source = noise(256 * mebibyte)
      source.on('data', (chunk: Buffer) => (written += chunk.length))
      source.pipe(response)
    }
    const response = await send('/public/x', undefined, {}, 'GET')
    response.pause()
    const settled = await stable(() => written)
    // The bytes that the upstream could send are in socket buffers of a few MiB. The gateway itself buffers nothing.
    expect(settled).toBeLessThan(48 * mebibyte)
    let received = 0
    for await (const chunk of response) received += (chunk as Buffer).length
    expect(received).toBe(256 * mebibyte)
  })

  it('a slow upstream slows the client down, and the request body is not buffered in memory', async () => {
    let release: () => void = () => {}
    at.upstream.answer = (request, response) => {
      release = () => {
        let received = 0
        request.on('data', (chunk: Buffer) => (received += chunk.length))
        request.on('end', () => response.end(String(received)))
      }
    }
    let sent = 0
    const source = noise(256 * mebibyte)
    source.on('data', (chunk: Buffer) => (sent += chunk.length))
    const answered = send('/public/x', source)
    expect(await stable(() => sent)).toBeLessThan(48 * mebibyte)
    release()
    const response = await answered
    expect(await text(response)).toBe(String(256 * mebibyte))
  })

  it('request and response flow at the same time, so each chunk comes back before the client sends the next one', async () => {
    at.upstream.answer = (request, response) => {
      response.writeHead(200)
      request.on('data', (chunk: Buffer) => response.write(`echo ${chunk}`))
      request.on('end', () => response.end())
    }
    const body = new PassThrough()
    body.write('0')
    const response = await send('/public/x', body)
    const chunks = response[Symbol.asyncIterator]()
    for (let i = 1; i <= 5; i++) {
      expect(String((await chunks.next()).value)).toBe(`echo ${i - 1}`)
      if (i < 5) body.write(String(i))
    }
    body.end()
    expect((await chunks.next()).done).toBe(true)
  })

  it('an event stream arrives event by event', async () => {
    let next: () => void = () => {}
    at.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      next = () => response.write('data: 2\n\n')
    }
    const response = await send('/public/events', undefined, {}, 'GET')
    const chunks = response[Symbol.asyncIterator]()
    expect(String((await chunks.next()).value)).toBe('data: 1\n\n')
    next()
    expect(String((await chunks.next()).value)).toBe('data: 2\n\n')
    response.destroy()
  })

  it.each([{ 'content-type': 'text/event-stream' }, { 'content-length': '3' }])(
    'the head of a response arrives before its body: %o',
    async fields => {
      let finish: () => void = () => {}
      at.upstream.answer = (_, response) => {
        response.writeHead(200, fields).flushHeaders()
        finish = () => response.end('end')
      }
      const response = await send('/public/slow', undefined, {}, 'GET')
      finish()
      expect(String((await response[Symbol.asyncIterator]().next()).value)).toBe('end')
    },
  )

  it('a body arrives byte for byte, even with big integers, other charsets or invalid UTF-8', async () => {
    const bodies = [
      Buffer.from('{"id":12345678901234567890,"n":1.0,"e":1e400,"a":1,"a":2, "z" : null }\n'),
      Buffer.from('{"name":"\xe9\xff\0"}', 'latin1'),
      Buffer.from('\ufeff{"b":1}', 'utf16le'),
      Buffer.from('not json at all'),
      Buffer.from('<x/>\r\n\r\n0\r\n\r\n'),
    ]
    for (const type of [
      'application/json',
      'application/json; charset=iso-8859-1',
      'application/x-www-form-urlencoded',
      'nonsense',
      ';',
    ]) {
      for (const body of bodies) {
        let seen: Buffer | undefined
        at.upstream.answer = async (request, response) => {
          const chunks: Buffer[] = []
          for await (const chunk of request) chunks.push(chunk as Buffer)
          seen = Buffer.concat(chunks)
          response.writeHead(200, { 'content-type': String(request.headers['content-type']) }).end(seen)
        }
        const lines = [`Content-Type: ${type}`, `Content-Length: ${body.length}`]
        const answer = await ask(at.gateway.url, requestBytes('POST', '/public/x', lines, body))
        expect([seen, answer?.body, answer && value(answer, 'content-type')]).toEqual([body, body, type])
      }
    }
  })

  it.each([
    ['GET', ['Content-Length: 5'], 'five!', 'five!', '5'],
    ['DELETE', ['Content-Length: 5'], 'five!', 'five!', '5'],
    ['OPTIONS', ['Content-Length: 5'], 'five!', 'five!', '5'],
    ['POST', ['Transfer-Encoding: chunked'], chunked('fi', 've!'), 'five!', undefined],
    ['GET', ['Transfer-Encoding: chunked'], chunked('five!'), 'five!', undefined],
    ['PATCH', ['Transfer-Encoding: Chunked'], chunked(), '', '0'],
    ['POST', ['Content-Length: 0'], '', '', '0'],
    ['POST', ['Content-Length: 005'], 'five!', 'five!', '5'],
    ['POST', [], '', '', '0'],
    ['GET', ['Content-Length: 0'], '', '', undefined],
    ['PUT', ['Content-Length: 5', 'Connection: content-length'], 'five!', 'five!', '5'],
  ])('a %s with %j keeps its body and its length', async (method, lines, sent, body, length) => {
    const answer = await ask(at.gateway.url, requestBytes(method, '/public/x', lines, sent), method)
    expect(answer?.status).toBe(200)
    const [seen] = at.upstream.received
    expect([seen?.method, seen?.body, seen?.headers['content-length']]).toEqual([method, body, length])
    expect(seen?.headers['transfer-encoding']).toBe(
      length === undefined && body !== '' ? 'chunked' : undefined,
    )
  })

  it('the request to the upstream ends when the client leaves in the middle of the request body', async () => {
    let arrive: () => void = () => {}
    const arrived = new Promise<void>(resolve => {
      arrive = resolve
    })
    const ended = new Promise<boolean>(resolve => {
      at.upstream.answer = request => {
        arrive()
        request.on('close', () => resolve(request.complete)).resume()
      }
    })
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/public/x', ['Content-Length: 100000'], 'a part of it'))
    await arrived
    connection.close()
    expect(await ended).toBe(false)
    await expect.poll(() => at.gateway.log.some(line => line.includes('"outcome":"client_gone"'))).toBe(true)
  })

  it.each([
    ['before the response', false],
    ['in the middle of the response', true],
  ])('the request to the upstream ends when the client leaves %s', async (_, answering) => {
    let arrived: () => void = () => {}
    const underWay = new Promise<void>(resolve => {
      arrived = resolve
    })
    const ended = new Promise<boolean>(resolve => {
      at.upstream.answer = (_, response) => {
        response.on('close', () => resolve(response.writableFinished))
        if (answering) response.writeHead(200, { 'content-length': '100' }).write('half of it')
        arrived()
      }
    })
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x'))
    await underWay
    connection.close()
    expect(await ended).toBe(false)
  })
})

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Waits until the value has not changed for 250 ms, and returns it. */
async function stable(read: () => number): Promise<number> {
  for (let last = -1, quiet = 0; quiet < 5; ) {
    await new Promise(resolve => setTimeout(resolve, 50))
    quiet = read() === last && last > 0 ? quiet + 1 : 0
    last = read()
  }
  return read()
}
