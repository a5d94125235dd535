// Sends uses to gateways. A service behind the gateways counts how often each use arrives.
import { createServer } from 'node:http'
import { listen } from '../upstream.ts'

/** A service behind the gateways that counts the requests of each use. */
export interface UseService {
  readonly url: string
  /** The number of requests by the ID of the use. */
  readonly seen: ReadonlyMap<string, number>
  /** Forgets all requests so far. */
  forget(): void
  close(): void
}

/** Starts the service. It responds with the header `x-plan`, which contains the plan of the user. */
export async function startUseService(): Promise<UseService> {
  const seen = new Map<string, number>()
  const server = createServer(({ headers }, response) => {
    const id = String(headers['x-use'])
    seen.set(id, (seen.get(id) ?? 0) + 1)
    response.setHeader('x-plan', headers['x-user-plan'] ?? '')
    response.end('{}')
  })
  const url = await listen(server)
  return {
    url,
    seen,
    forget: () => seen.clear(),
    close: () => server.close().closeAllConnections(),
  }
}

interface Answer {
  /** The status code; 0 if the connection failed. */
  readonly status: number
  readonly plan: string
  readonly policy: { quota: string; limit: number; remaining: number } | undefined
  readonly body: Record<string, unknown>
  /** The number of times that the request reached the service. */
  readonly forwarded: number
}

/** Sends a GET. @param replica the index of the gateway */
export type Sender = (replica: number, path: string, token: string) => Promise<Answer>

export function createSender({
  replicas,
  service: { seen },
}: {
  readonly replicas: readonly { readonly url: string }[]
  readonly service: UseService
}): Sender {
  let uses = 0
  return async (replica, path, token) => {
    const id = String(++uses)
    try {
      const response = await fetch(`${replicas[replica]?.url}${path}`, {
        headers: { authorization: `Bearer ${token}`, 'x-use': id },
        signal: AbortSignal.timeout(10_000),
      })
      const text = await response.text()
      const [, quota = '', limit] =
        /"quota:(\w+)";q=(\d+)$/.exec(response.headers.get('ratelimit-policy') ?? '') ?? []
      const [, remaining] = /"quota:\w+";r=(\d+);t=\d+$/.exec(response.headers.get('ratelimit') ?? '') ?? []
      return {
        status: response.status,
        plan: response.headers.get('x-plan') ?? '',
        policy:
          limit === undefined ? undefined : { quota, limit: Number(limit), remaining: Number(remaining) },
        body: response.status === 200 ? {} : JSON.parse(text),
        forwarded: seen.get(id) ?? 0,
      }
    } catch {
      return { status: 0, plan: '', policy: undefined, body: {}, forwarded: seen.get(id) ?? 0 }
    }
  }
}
