// Sends requests at a fixed rate and counts them by outcome. The figures in the console must match these counts.
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { codeOf } from './error-code.ts'

/** The kinds of ten successive requests. After every ten requests, the same order begins again. */
const turns = [
  'passes',
  'passes',
  'stranger',
  'passes',
  'passes',
  'fails',
  'passes',
  'spent',
  'passes',
  'public',
] as const
type Kind = (typeof turns)[number]

interface Question {
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  /** The expected status code. */
  readonly status: number
}

/** The request headers of two users. */
export interface Callers {
  /** The headers of a pro user. */
  readonly bearer: Record<string, string>
  /** The headers of a free user without uses left. */
  readonly spent: Record<string, string>
}

export interface Counted {
  readonly requests: number
  /** The number of 5xx responses. */
  readonly errors: number
  /** For each guard, the number of requests that the guard refused. */
  readonly refused: Readonly<Record<string, number>>
}

export interface CountedLoad {
  /** Contains a line for each request that had an unexpected outcome. */
  readonly wrong: string[]
  /** Sends no further requests. Resolves when all requests have ended. */
  stop(): Promise<Counted>
}

export function startCountedLoad(port: number, { bearer, spent }: Callers, perSecond: number): CountedLoad {
  const kinds: Record<Kind, Question> = {
    passes: { path: '/bearer/small', headers: bearer, status: 200 },
    stranger: { path: '/bearer/small', headers: {}, status: 401 },
    fails: { path: '/public/fails?status=500', headers: {}, status: 500 },
    spent: { path: '/counted/small', headers: spent, status: 429 },
    public: { path: '/public/small', headers: {}, status: 200 },
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const counts: Record<Kind, number> = { passes: 0, stranger: 0, fails: 0, spent: 0, public: 0 }
  const wrong: string[] = []
  const pending = new Set<Promise<void>>()
  const begun = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    // The number of requests to send is computed from the clock. So a late timer does not lower the rate.
    while (sent < ((performance.now() - begun) / 1_000) * perSecond) {
      const one = send(turns[sent % turns.length] ?? 'public')
      sent += 1
      pending.add(one)
      one.finally(() => pending.delete(one))
    }
  }, 10)

  async function send(kind: Kind): Promise<void> {
    const status = await outcomeOf(kinds[kind])
    counts[kind] += 1
    if (status !== kinds[kind].status) wrong.push(`${kind} ${status}`)
  }

  function outcomeOf({ path, headers }: Question): Promise<number | string> {
    return new Promise(resolve => {
      const onError = (error: Error) => resolve(codeOf(error))
      request({ host: '127.0.0.1', port, path, headers, agent })
        .on('error', onError)
        .on('response', answer => {
          answer.on('error', onError).resume()
          answer.on('end', () => resolve(answer.statusCode ?? 0))
        })
        .end()
    })
  }

  return {
    wrong,
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
      agent.destroy()
      return {
        requests: Object.values(counts).reduce((sum, count) => sum + count, 0),
        errors: counts.fails,
        refused: { authenticate: counts.stranger, free_daily: counts.spent },
      }
    },
  }
}
