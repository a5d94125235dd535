// Sends real requests to a running gateway, and records the responses and the requests that upstreams receive.
import { Agent, createServer, type IncomingMessage, request as send } from 'node:http'
import { listen, type Received } from '../../support/upstream.ts'

export type Pair = readonly [name: string, value: string]

export interface Echo {
  readonly name: string
  readonly url: string
  readonly received: Pick<Received, 'method' | 'url' | 'rawHeaders'>[]
  close(): Promise<void>
}

/** Starts an upstream that records the requests it receives. @param fields the headers of its responses */
export async function startEcho(name: string, fields: readonly Pair[]): Promise<Echo> {
  const received: Echo['received'][number][] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', rawHeaders } = request
    received.push({ method, url, rawHeaders })
    request.resume()
    response.writeHead(200, fields.flat()).end()
  })
  return {
    name,
    url: await listen(server),
    received,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

export interface Answer {
  readonly status: number
  readonly fields: Pair[]
  readonly body: string
}

export interface Sender {
  send(method: string, path: string, fields: readonly Pair[]): Promise<Answer>
  close(): void
}

/** Returns a client that sends request targets unchanged. @param base the gateway's URL */
export function createSender(base: string): Sender {
  const { hostname, port } = new URL(base)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async send(method, path, fields) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        send({ hostname, port, agent, method, path, setHost: false, headers: fields.flat() })
          .on('response', resolve)
          .on('error', reject)
          .end()
      })
      const chunks: Buffer[] = []
      for await (const chunk of answer) chunks.push(chunk as Buffer)
      return {
        status: answer.statusCode ?? 0,
        fields: pairsOf(answer.rawHeaders),
        body: Buffer.concat(chunks).toString(),
      }
    },
    close: () => agent.destroy(),
  }
}

/** Returns the headers of Node's `rawHeaders` as pairs. */
export function pairsOf(raw: readonly string[]): Pair[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] as string] as const] : []))
}
