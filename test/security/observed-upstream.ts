// An upstream that keeps every request it takes for one, plain or as lax as any that CONTRACT §6 fears.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { listen } from '../support/upstream.ts'
import { isUnder, worstCase } from './invariants.ts'

export interface Seen {
  method: string
  url: string
  fields: [name: string, value: string][]
  trailers: string[]
  body: Buffer
  /** It came to its end: one that was cut off is nobody's request. */
  complete: boolean
}

export interface ObservedUpstream {
  readonly url: string
  readonly seen: Seen[]
  /** How many requests it ever took, whole or cut off. */
  readonly count: number
  /** How it reads paths: as they are, or with every leniency at once. */
  reading: 'plain' | 'lax'
  /** Answers instead. */
  answer: RequestListener | undefined
  close(): Promise<void>
}

/** @param guarded the prefix behind which it keeps its secret */
export async function startObservedUpstream(guarded: string): Promise<ObservedUpstream> {
  let count = 0
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    count += 1
    const record: Seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      fields: pairs(request.rawHeaders),
      trailers: [],
      body: Buffer.alloc(0),
      complete: false,
    }
    seen.push(record)
    if (upstream.answer !== undefined) {
      upstream.answer(request, response)
      return
    }
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    record.trailers = request.rawTrailers
    record.body = Buffer.concat(chunks)
    record.complete = true
    serve(request, response, isSecret(record.url))
  })
  const isSecret = (url: string) =>
    isUnder(upstream.reading === 'lax' ? worstCase(url) : (url.split('?', 1)[0] as string), guarded)
  const upstream: ObservedUpstream = {
    url: await listen(server),
    seen,
    get count() {
      return count
    },
    reading: 'plain',
    answer: undefined,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return upstream
}

function serve(request: IncomingMessage, response: ServerResponse, secret: boolean): void {
  const caller = request.headers['x-user-id'] ?? 'nobody'
  response.writeHead(200, { 'content-type': 'text/plain', 'x-upstream': 'yes' })
  response.end(`${secret ? 'secret' : 'public'} for ${caller}`)
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string])
}
