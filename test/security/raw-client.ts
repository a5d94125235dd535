// A client that sends exactly the given bytes. An HTTP library would correct or refuse the attacks.
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface RawAnswer {
  status: number
  reason: string
  /** The headers in the order received, with names in lower case. */
  fields: [name: string, value: string][]
  body: Buffer
  trailers: [name: string, value: string][]
  /** False if the connection ended before the response was complete. */
  complete: boolean
}

/** One connection to a gateway. Strings are sent as latin1, so one character is one byte. */
export class RawConnection {
  readonly socket: Socket
  /**
   * If the buffer is full, its size doubles. If each chunk were appended by copying all bytes, a large response would
   * take seconds.
   */
  #buffer = Buffer.alloc(0)
  #start = 0
  #end = 0
  #ended = false
  #wake: (() => void)[] = []

  /** @param from the loopback address to connect from; only a test with several clients needs it */
  constructor(base: string, from?: string) {
    const { protocol, hostname, port } = new URL(base)
    const local = from === undefined ? {} : { localAddress: from }
    const to = { host: hostname, port: Number(port), allowHalfOpen: true, ...local }
    // These tests do not check the certificate.
    this.socket = protocol === 'https:' ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to)
    this.socket.on('data', chunk => {
      this.#append(chunk)
      this.#notify()
    })
    for (const event of ['end', 'close']) {
      this.socket.on(event, () => {
        this.#ended = true
        this.#notify()
      })
    }
    // A reset counts as the end of the connection. The bytes that arrived before the reset are kept.
    this.socket.on('error', () => {})
  }

  get #received(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end)
  }

  #append(chunk: Buffer): void {
    if (this.#end + chunk.length > this.#buffer.length) {
      const unread = this.#received
      this.#buffer = Buffer.allocUnsafe(2 * (unread.length + chunk.length))
      this.#start = 0
      this.#end = unread.copy(this.#buffer)
    }
    this.#end += chunk.copy(this.#buffer, this.#end)
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  /** Whether the server has half-closed, closed or reset the connection. */
  get ended(): boolean {
    return this.#ended
  }

  write(bytes: string | Buffer): boolean {
    return this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /**
   * Sends all bytes, and waits while the server does not read.
   * @returns false if the connection ends before all bytes are sent
   */
  async writeAll(bytes: Buffer, chunk = 65_536): Promise<boolean> {
    for (let at = 0; at < bytes.length; at += chunk) {
      if (this.#ended || this.socket.destroyed) return false
      if (!this.write(bytes.subarray(at, at + chunk))) {
        await this.#drained()
      }
    }
    return true
  }

  #drained(): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        this.socket.off('drain', done).off('close', done)
        resolve()
      }
      this.socket.on('drain', done).on('close', done)
    })
  }

  /**
   * Reads the next response, including interim responses (1xx).
   * @param method the method of the request; a response to HEAD has no body
   * @param within the timeout in milliseconds
   * @returns undefined if the timeout or the end of the connection comes first
   */
  async answer(method = 'GET', within = 5_000): Promise<RawAnswer | undefined> {
    const deadline = performance.now() + within
    for (;;) {
      const read = readAnswer(this.#received, this.#ended, method)
      if (read !== undefined) {
        this.#start += read.length
        return read.answer
      }
      if (this.#ended || !(await this.#news(deadline))) return undefined
    }
  }

  /** Reads the next response that is not an interim response. */
  async finalAnswer(method = 'GET'): Promise<RawAnswer | undefined> {
    const answer = await this.answer(method)
    return answer !== undefined && answer.status < 200 ? this.finalAnswer(method) : answer
  }

  /**
   * Reads all responses until the server ends the connection or is silent for a while.
   * @param method the method of the first request; later requests count as GET
   */
  async answers(method = 'GET'): Promise<RawAnswer[]> {
    const answers: RawAnswer[] = []
    for (;;) {
      const isFirst = answers.length === 0
      const answer = await this.answer(isFirst ? method : 'GET', isFirst ? 3_000 : 150)
      if (answer === undefined) return answers
      answers.push(answer)
    }
  }

  /** Waits up to `limit` milliseconds. @returns whether the server has ended the connection */
  async endsWithin(limit: number): Promise<boolean> {
    const deadline = performance.now() + limit
    while (!this.#ended && (await this.#news(deadline))) {}
    return this.#ended
  }

  async #news(deadline: number): Promise<boolean> {
    const left = deadline - performance.now()
    if (left <= 0) return false
    let timer: NodeJS.Timeout | undefined
    const news = new Promise<boolean>(resolve => {
      this.#wake.push(() => resolve(true))
      timer = setTimeout(() => resolve(false), left)
    })
    const came = await news
    clearTimeout(timer)
    return came
  }

  /** The received bytes that were not yet read as a response. */
  get unread(): Buffer {
    return this.#received
  }

  close(): void {
    this.socket.destroy()
  }
}

/** Sends bytes on a new connection and waits for one response. */
export async function ask(
  base: string,
  bytes: string | Buffer,
  method = 'GET',
): Promise<RawAnswer | undefined> {
  const connection = new RawConnection(base)
  try {
    connection.write(bytes)
    return await connection.answer(method)
  } finally {
    connection.close()
  }
}

/** Returns a request: request line, headers and body. Adds `Host: gw.test` if `lines` contains no Host. */
export function requestBytes(
  method: string,
  target: string,
  lines: readonly string[] = [],
  body: string | Buffer = '',
): Buffer {
  const host = lines.some(line => /^host:/i.test(line)) ? [] : ['Host: gw.test']
  const head = [`${method} ${target} HTTP/1.1`, ...host, ...lines, '', ''].join('\r\n')
  return Buffer.concat([
    Buffer.from(head, 'latin1'),
    typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
  ])
}

/** Returns a complete body in chunked coding. */
export function chunked(...chunks: (string | Buffer)[]): Buffer {
  const coded = chunks.map(chunk => {
    const bytes = Buffer.from(chunk as string, 'latin1')
    return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  })
  return Buffer.concat([...coded, Buffer.from('0\r\n\r\n')])
}

/** Returns the values of a header, in the order received. */
export function values(answer: Pick<RawAnswer, 'fields'>, name: string): string[] {
  return answer.fields.filter(([other]) => other === name).map(([, value]) => value)
}

export function value(answer: Pick<RawAnswer, 'fields'>, name: string): string | undefined {
  return values(answer, name)[0]
}

/** Parses the response at the start of `bytes`. @returns undefined if the response is incomplete */
export function readAnswer(
  bytes: Buffer,
  ended: boolean,
  method: string,
): { answer: RawAnswer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [line = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const [, status = '', reason = ''] = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/.exec(line) ?? []
  if (status === '') throw new Error(`not a status line: ${line}`)
  const answer: RawAnswer = {
    status: Number(status),
    reason,
    fields: lines.map(parseField),
    body: Buffer.alloc(0),
    trailers: [],
    complete: true,
  }
  const start = headEnd + 4
  const hasNoBody = method === 'HEAD' || answer.status < 200 || answer.status === 204 || answer.status === 304
  if (hasNoBody) return { answer, length: start }
  if (value(answer, 'transfer-encoding') === 'chunked') return readChunks(answer, bytes, start, ended)
  const declared = value(answer, 'content-length')
  const length = declared === undefined ? Number.POSITIVE_INFINITY : Number(declared)
  if (bytes.length - start < length && !ended) return undefined
  const end = Math.min(bytes.length, start + length)
  answer.body = Buffer.from(bytes.subarray(start, end))
  answer.complete = declared === undefined || answer.body.length === length
  return { answer, length: end }
}

function readChunks(answer: RawAnswer, bytes: Buffer, start: number, ended: boolean) {
  const chunks: Buffer[] = []
  let at = start
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const dataEnd = lineEnd + 2 + size
    if (Number.isNaN(size) || bytes.length < dataEnd + 2) break
    if (size > 0) {
      chunks.push(bytes.subarray(lineEnd + 2, dataEnd))
      at = dataEnd + 2
      continue
    }
    const end = bytes.indexOf('\r\n\r\n', lineEnd)
    if (end === -1) break
    answer.body = Buffer.concat(chunks)
    const trailers = bytes.toString('latin1', lineEnd + 2, end)
    answer.trailers = trailers === '' ? [] : trailers.split('\r\n').map(parseField)
    return { answer, length: end + 4 }
  }
  if (!ended) return undefined
  answer.body = Buffer.concat(chunks)
  answer.complete = false
  return { answer, length: bytes.length }
}

function parseField(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}
