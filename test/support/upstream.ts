// An HTTP upstream on its own port. It records each request, and sends the request back as JSON.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  method: string
  /** The path and query exactly as received. */
  url: string
  rawHeaders: string[]
  headers: IncomingMessage['headers']
  trailers: IncomingMessage['trailers']
  body: string
}

export interface Upstream {
  readonly url: string
  readonly received: Received[]
  /** Handles the requests. If it is undefined, the upstream sends each request back as JSON. */
  answer: RequestListener | undefined
  close(): Promise<void>
}

/** Starts the upstream. By default, it responds to each request with a 200 and the request as JSON. */
export async function startUpstream(): Promise<Upstream> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
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
    const seen: Received = {
      method: request.method ?? '',
      url: request.url ?? '',
      rawHeaders: request.rawHeaders,
      headers: request.headers,
      trailers: request.trailers,
      body: Buffer.concat(chunks).toString(),
    }
    received.push(seen)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(seen))
  })
  const upstream: Upstream = {
    url: await listen(server),
    received,
    answer: undefined,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return upstream
}

/** Makes the server listen on a free port of 127.0.0.1. @returns the URL of the server */
export async function listen(server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
