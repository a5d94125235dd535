// Sends requests of every kind that a client could invent. A request combines a target, a method, a status code of the
// upstream and a credential. Each of these parts has several kinds. Some kinds contain random values.
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { bearer } from './accounts.ts'
import { codeOf } from './error-code.ts'
import { random } from './settings.ts'

/** Returns a random word. */
const word = () => random().toString(36).slice(2)

function any<T>(all: readonly T[]): T {
  return all[Math.floor(random() * all.length)] as T
}

interface Target {
  readonly path: string
  readonly host?: string
}

/** Paths of gateway endpoints, paths of declared routes, and unknown paths. Most paths contain random words. */
const targets: readonly (() => Target)[] = [
  () => ({ path: `/public/${word()}/${word()}` }),
  () => ({ path: `/guarded/${word()}` }),
  () => ({ path: `/paid/${word()}/reviews` }),
  () => ({ path: `/daily/${word()}` }),
  () => ({ path: `/read/${word()}` }),
  () => ({ path: `/hosted/${word()}`, host: 'drill.example' }),
  // This path belongs to a route that requires a certain host. The request has another host.
  () => ({ path: `/hosted/${word()}` }),
  () => ({ path: `/${word()}/${word()}` }),
  () => ({ path: `/public/${word()}/../${word()}` }),
  () => ({ path: `/guarded/${word()}%2F${word()}` }),
  // An invalid percent-encoding.
  () => ({ path: `/public/%${word()}%zz` }),
  () => ({ path: `/guarded/${word().repeat(200)}` }),
  () => ({ path: '/api/v1/auth/login' }),
  () => ({ path: '/api/v1/auth/refresh' }),
  // An unknown endpoint.
  () => ({ path: `/api/v1/auth/${word()}` }),
  () => ({ path: '/api/v1/subscription/upgrade' }),
  () => ({ path: '/.well-known/jwks.json' }),
]

const knownMethods = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  ...['TRACE', 'PROPFIND', 'PURGE', 'MKCOL'],
]
const methods: readonly (() => string)[] = [
  ...knownMethods.map(method => () => method),
  () => `X${word().toUpperCase()}`,
]

/**
 * The status codes that the upstream returns: common codes, gateway errors (502, 503 and 504), and unregistered codes.
 */
const statuses: readonly (() => number)[] = [
  ...[200, 204, 404, 502, 503, 504].map(status => () => status),
  ...[2, 4, 5, 9].map(digit => () => digit * 100 + 60 + Math.floor(random() * 39)),
]

export interface Known {
  readonly tokens: readonly string[]
  /** The tokens of users without uses left. */
  readonly spent: readonly string[]
  /** The tokens of deactivated users. */
  readonly inactive: readonly string[]
  /** The API keys. */
  readonly keys: readonly string[]
}

function credentialsOf({ tokens, spent, inactive, keys }: Known): readonly (() => OutgoingHttpHeaders)[] {
  return [
    () => ({}),
    () => bearer(any(tokens)),
    () => bearer(any(spent)),
    () => bearer(any(inactive)),
    () => bearer(`${word()}.${word()}.${word()}`),
    // A forged signature.
    () => bearer(any(tokens).slice(0, -20) + word().padEnd(20, 'x')),
    () => ({ 'x-api-key': any(keys) }),
    () => ({ 'x-api-key': `peage_${word()}` }),
    // Two tokens.
    () => ({ authorization: [`Bearer ${any(tokens)}`, `Bearer ${word()}`] }),
  ]
}

/**
 * Maps each status code to the number of its responses, and each error to the number of requests that failed with it.
 */
export type Answers = ReadonlyMap<number | string, number>

export interface Strangers {
  /** Sends one request for each combination of target, method, status code and credential. */
  everyKind(): Promise<Answers>
  /** Sends `count` requests. Each request is a random combination. */
  random(count: number): Promise<Answers>
  stop(): void
}

interface Kind {
  readonly target: () => Target
  readonly method: () => string
  readonly status: () => number
  readonly credential: () => OutgoingHttpHeaders
}

export function createStrangers(port: number, known: Known): Strangers {
  const credentials = credentialsOf(known)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })

  function ask(kind: Kind): Promise<number | string> {
    const { path, host = `${word()}.example:${any([80, 8080, 443])}` } = kind.target()
    const headers = {
      host,
      'user-agent': word(),
      'x-request-id': word(),
      'x-forwarded-for': `192.0.2.${Math.floor(random() * 256)}`,
      'content-length': '0',
      ...kind.credential(),
    }
    const query = `status=${kind.status()}&${word()}=${word()}`
    const place = { host: '127.0.0.1', port, path: `${path}?${query}`, method: kind.method() }
    return new Promise(resolve => {
      const onError = (error: Error) => resolve(codeOf(error))
      request({ ...place, headers, agent })
        .on('error', onError)
        .on('response', answer =>
          answer
            .on('error', onError)
            .on('end', () => resolve(answer.statusCode ?? 0))
            .resume(),
        )
        .end()
    })
  }

  return {
    everyKind() {
      const kinds = targets.flatMap(target =>
        methods.flatMap(method =>
          statuses.flatMap(status =>
            credentials.map((credential): Kind => ({ target, method, status, credential })),
          ),
        ),
      )
      return countAnswers(kinds.values(), ask)
    },
    random: count => countAnswers(randomKinds(count, credentials), ask),
    stop: () => agent.destroy(),
  }
}

function* randomKinds(count: number, credentials: readonly (() => OutgoingHttpHeaders)[]): Generator<Kind> {
  for (let nth = 0; nth < count; nth += 1)
    yield {
      target: any(targets),
      method: any(methods),
      status: any(statuses),
      credential: any(credentials),
    }
}

/** Sends the requests, up to 64 at a time, and counts the responses. */
async function countAnswers(
  kinds: IterableIterator<Kind>,
  ask: (kind: Kind) => Promise<number | string>,
): Promise<Answers> {
  const answers = new Map<number | string, number>()
  const worker = async () => {
    for (const kind of kinds) {
      const answer = await ask(kind)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 64 }, worker))
  return answers
}
