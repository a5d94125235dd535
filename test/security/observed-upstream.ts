// An upstream that parses strictly or leniently and records every request that it receives.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { listen } from '../support/upstream.ts'
import { isUnder, worstCase } from './readings.ts'

export interface Seen {
  method: string
  url: string
  fields: [name: string, value: string][]
  trailers: string[]
  body: Buffer
  /** Whether the whole request arrived. */
  complete: boolean
  /** Whether the path is under the guarded prefix, according to this upstream or to nginx in front of it. */
  isSecret: boolean
}

export interface ObservedUpstream {
  readonly url: string
  readonly seen: Seen[]
  /** The number of requests received since the start, including incomplete ones. */
  readonly count: number
  /** How the upstream interprets paths. `plain`: literally. `lax`: like the most lenient upstream in readings.ts. */
  reading: 'plain' | 'lax'
  /** If set, responds to the requests instead of the default handler. */
  answer: RequestListener | undefined
  close(): Promise<void>
}

/**
 * Starts an upstream.
 * @param guarded the path prefix for which the upstream responds with "secret"
 * @param parsing with `lax`, the upstream accepts framing that RFC 9112 §11 forbids, so it would read smuggled bytes as
 * requests
 */
export async function startObservedUpstream(
  guarded: string,
  parsing: 'strict' | 'lax' = 'strict',
): Promise<ObservedUpstream> {
  let count = 0
  const seen: Seen[] = []
  const options = { insecureHTTPParser: parsing === 'lax', requireHostHeader: parsing === 'strict' }
  const server = createServer(options, async (request, response) => {
    count += 1
    const fields = pairs(request.rawHeaders)
    const record: Seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      fields: fields.filter(([name]) => name !== locationField),
      trailers: [],
      body: Buffer.alloc(0),
      complete: false,
      isSecret: isSecret(request.url ?? '', fields),
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
    serve(request, response, record.isSecret)
  })
  const isSecret = (url: string, fields: [string, string][]) => {
    const [, location] = fields.findLast(([name]) => name === locationField) ?? []
    if (location !== undefined) return location === 'guarded'
    return isUnder(upstream.reading === 'lax' ? worstCase(url) : (url.split('?', 1)[0] as string), guarded)
  }
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

/** nginx chooses a location for each request, and sends its choice to the upstream in this header (see nginx.ts). */
const locationField = 'X-Nginx-Location'

function serve(request: IncomingMessage, response: ServerResponse, secret: boolean): void {
  const caller = request.headers['x-user-id'] ?? 'nobody'
  // The response contains the address of the client that sent the request. So the tests notice if the gateway sends the
  // response to another client.
  const from = request.headers['x-forwarded-for'] ?? 'nowhere'
  response.writeHead(200, { 'content-type': 'text/plain', 'x-upstream': 'yes', 'x-heard-from': from })
  response.end(`${secret ? 'secret' : 'public'} for ${caller}`)
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string])
}
