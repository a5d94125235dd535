// A client that sends exactly the bytes it is told to: a library would tidy an attack up.
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface RawAnswer {
  status: number
  reason: string
  /** Names in lower case, in the order received. */
  fields: [name: string, value: string][]
  body: Buffer
  trailers: [name: string, value: string][]
  /** False where the connection ended before the answer did. */
  complete: boolean
}

/** One connection to a gateway. Strings are latin1: one character, one byte. */
export class RawConnection {
  readonly socket: Socket
  /** Doubled when it is full: joining all that was received at each chunk takes seconds for a large answer. */
  #buffer = Buffer.alloc(0)
  #start = 0
  #end = 0
  #ended = false
  #wake: (() => void)[] = []

  /** @param from the loopback address to call from, where many callers must be told apart */
  constructor(base: string, from?: string) {
    const { protocol, hostname, port } = new URL(base)
    const local = from === undefined ? {} : { localAddress: from }
    const to = { host: hostname, port: Number(port), allowHalfOpen: true, ...local }
    // Whose certificate it is, is no matter of these tests.
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
    // A reset is an end; what was received before it counts.
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

  /** The server has half-closed, closed or reset the connection. */
  get ended(): boolean {
    return this.#ended
  }

  write(bytes: string | Buffer): boolean {
    return this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Sends it all, waiting where the server does not read; false where the connection ended before. */
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
   * The next answer, interim ones (1xx) included; `undefined` where none comes within the limit.
   * @param method of the request: an answer to HEAD has no body whatever it declares
   * @param within milliseconds
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

  /** The next answer that is no interim one. */
  async finalAnswer(method = 'GET'): Promise<RawAnswer | undefined> {
    const answer = await this.answer(method)
    return answer !== undefined && answer.status < 200 ? this.finalAnswer(method) : answer
  }

  /**
   * All answers until the server ends the connection or nothing comes for a while.
   * @param method of the first request; those behind it are taken for GET
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

  /** Whether the server ends the connection within so many milliseconds. */
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

  /** All that was received and not yet read as an answer. */
  get unread(): Buffer {
    return this.#received
  }

  close(): void {
    this.socket.destroy()
  }
}

/** Sends bytes on a connection of their own and waits for one answer. */
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

/** A request's bytes: line, fields and body, and the Host that most requests have. */
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

/** A body in chunks of the chunked coding, with its end. */
export function chunked(...chunks: (string | Buffer)[]): Buffer {
  const coded = chunks.map(chunk => {
    const bytes = Buffer.from(chunk as string, 'latin1')
    return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  })
  return Buffer.concat([...coded, Buffer.from('0\r\n\r\n')])
}

/** The values of a field, in order. */
export function values(answer: Pick<RawAnswer, 'fields'>, name: string): string[] {
  return answer.fields.filter(([other]) => other === name).map(([, value]) => value)
}

export function value(answer: Pick<RawAnswer, 'fields'>, name: string): string | undefined {
  return values(answer, name)[0]
}

/** One answer at the start of what was received; `undefined` where it is not all there and may still come. */
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
