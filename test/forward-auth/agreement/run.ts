// Sends each generated request to a gateway as a client. Then sends two questions about this request, as proxies would
// (docs/forward-auth.md). One question describes the request in `X-Forwarded-*` headers, and the other in its own path.
// The three decisions must be equal.
import { createHash, randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import type { ExplainRequest } from '../../../src/explain/explain.ts'
import { configurations, type Generated } from '../../explain/agreement/configurations.ts'
import {
  createSender,
  type Echo,
  type Pair,
  type Sender,
  startEcho,
} from '../../explain/agreement/exchange.ts'
import { keys, questions } from '../../explain/agreement/questions.ts'
import { newUser, type TestUser } from '../../support/client.ts'
import { embedded, startGateway, type TestGateway } from '../../support/gateway.ts'
import { path } from '../ask.ts'
import { differencesOf, type Happened } from './judge.ts'

interface Plan {
  readonly seed: number
  readonly configurations: number
  /** The number of requests for each configuration. */
  readonly requests: number
  onConfiguration?(count: number): void
}

interface Report {
  /** The number of client requests. For each, two questions were also sent. */
  requests: number
  readonly disagreements: { differences: readonly string[]; request: ClientRequest; yaml: string }[]
  /**
   * The number of requests for each outcome. An outcome is the status and error code of the response to the question
   * with `X-Forwarded-*` headers.
   */
  readonly outcomes: Record<string, number>
}

type ClientRequest = Omit<ExplainRequest, 'user' | 'verified' | 'used'> & { readonly fields: readonly Pair[] }

export async function runBothWays(plan: Plan): Promise<Report> {
  const report: Report = { requests: 0, disagreements: [], outcomes: {} }
  const upstreams = [await startEcho('north', []), await startEcho('south', [])] as const
  try {
    const { seed, configurations: numRuns } = plan
    const generated = fc.sample(configurations([upstreams[0].url, upstreams[1].url]), { seed, numRuns })
    for (const [index, configuration] of generated.entries()) {
      const requests = fc.sample(requestsTo(configuration), { seed: seed + index, numRuns: plan.requests })
      await compare(configuration, requests, upstreams, report)
      plan.onConfiguration?.(index + 1)
    }
  } finally {
    await Promise.all(upstreams.map(upstream => upstream.close()))
  }
  return report
}

function requestsTo({ config }: Generated): fc.Arbitrary<ClientRequest> {
  return fc
    .record({
      question: questions(config),
      fields: fc.constantFrom<readonly Pair[]>([], [], [], ...furtherFields),
    })
    .map(({ question, fields }) => {
      // A client may send an absolute URL, but nginx, Traefik, Caddy and Envoy split it into a path and a host. So no
      // question contains an absolute URL.
      const [, authority, rest] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(question.path) ?? []
      const target = rest === undefined ? question.path : rest.startsWith('/') ? rest : `/${rest}`
      return { ...question, path: target, host: authority ?? question.host, fields }
    })
}

const page: Pair = ['Origin', 'https://app.example.com']
const furtherFields: readonly (readonly Pair[])[] = [
  [page],
  [['Origin', 'https://other.example.com']],
  [page, ['Access-Control-Request-Method', 'GET']],
  [page, ['Access-Control-Request-Method', 'PUT'], ['Access-Control-Request-Headers', 'x-a, x-b']],
  [
    ['X-User-Id', '999'],
    ['x-user-plan', 'pro'],
    ['X-Peage-Assertion', 'forged'],
  ],
  [
    ['Authorization', 'Bearer invalid'],
    ['X-API-Key', 'invalid'],
  ],
  [['X-API-Key', 'of-the-upstream']],
  [['X-HTTP-Method-Override', 'DELETE']],
]

async function compare(
  { yaml, server, limits, config }: Generated,
  requests: readonly ClientRequest[],
  upstreams: readonly Echo[],
  report: Report,
): Promise<void> {
  // The clock advances by one day for each request. Therefore, the tokens of the users must stay valid for a long time.
  const auth = ', access_token_ttl: 3000d, refresh_token_ttl: 3000d'
  const gateway = await startGateway(yaml, embedded, {
    server: `${server}, forward_auth: { from: [127.0.0.1] }`,
    limits,
    auth,
  })
  const sender = createSender(gateway.url)
  try {
    const users = {
      free: await newKeyHolder(gateway, 'free'),
      premium: await newKeyHolder(gateway, 'premium'),
      pro: await newKeyHolder(gateway, 'pro'),
    }
    for (const request of requests) {
      const user = request.as === 'anonymous' ? undefined : users[request.as as keyof typeof users]
      const happened = await sendEach({ gateway, sender, upstreams, request, user })
      const differences = differencesOf(happened, request, config)
      report.requests += 1
      if (differences.length > 0) report.disagreements.push({ differences, request, yaml })
      const { status, fields } = happened.inFields
      const code = fields.find(([name]) => name.toLowerCase() === 'x-peage-error')?.[1]
      const outcome = code === undefined ? String(status) : `${status} ${code}`
      report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1
    }
  } finally {
    sender.close()
    await gateway.stop()
  }
}

async function newKeyHolder(gateway: TestGateway, plan: string): Promise<TestUser> {
  const user = await newUser(gateway, plan)
  for (const { scopes } of keys) {
    const hash = createHash('sha256').update(keyOf(user, scopes)).digest('hex')
    await gateway.sql(
      "insert into api_keys (id, user_id, token_hash, name, prefix, scopes) values ($1, $2, $3, 'key', '', $4)",
      [randomUUID(), user.id, hash, scopes],
    )
  }
  return user
}

function keyOf({ id }: TestUser, scopes: readonly string[] | null): string {
  return `peage_${id}-${JSON.stringify(scopes)}`
}

interface Parts {
  readonly gateway: TestGateway
  readonly sender: Sender
  readonly upstreams: readonly Echo[]
  readonly request: ClientRequest
  readonly user: TestUser | undefined
}

async function sendEach({ gateway, sender, upstreams, request, user }: Parts): Promise<Happened> {
  const { method, path: target, host, key, fields } = request
  const credential: Pair[] =
    user === undefined
      ? []
      : [
          key === undefined
            ? ['Authorization', `Bearer ${user.access}`]
            : ['X-API-Key', keyOf(user, key.scopes)],
        ]
  const others = [...credential, ...fields]
  /** Starts a new day with `request.usedToday` daily uses. All earlier rate-limit windows have then ended. */
  const onNewDay = async () => {
    gateway.clock.at += 86_400_000
    for (const { received } of upstreams) received.length = 0
    if (user === undefined) return
    const day = new Date(gateway.clock.at).toISOString().slice(0, 10)
    await gateway.sql('update users set daily_usage = $2, last_usage_date = $3 where id = $1', [
      user.id,
      request.usedToday,
      day,
    ])
  }
  const usesOf = async () => {
    if (user === undefined) return 0
    const [row] = await gateway.sql<{ daily_usage: number }>('select daily_usage from users where id = $1', [
      user.id,
    ])
    return row?.daily_usage ?? 0
  }

  await onNewDay()
  gateway.log.length = 0
  const client = await sender.send(method, target, [['Host', host], ...others])
  const received = upstreams.flatMap(upstream => upstream.received.splice(0))
  const uses = [await usesOf()]
  const route = await loggedRoute(gateway)
  await onNewDay()
  const forwarded: Pair[] = [
    ['Host', 'peage.internal'],
    ['X-Forwarded-Method', method],
    ['X-Forwarded-Uri', target],
    ['X-Forwarded-Host', host],
    ['X-Forwarded-For', '127.0.0.1'],
  ]
  const inFields = await sender.send('GET', path, [...forwarded, ...others])
  uses.push(await usesOf())
  await onNewDay()
  const inPath = await sender.send(method, path + target, [
    ['Host', host],
    ['X-Forwarded-For', '127.0.0.1'],
    ['X-Forwarded-Uri', '/forged'],
    ...others,
  ])
  uses.push(await usesOf())
  const reached = upstreams.flatMap(upstream => upstream.received)
  return { client, received, route, inFields, inPath, uses, reachedByQuestions: reached.length }
}

/** Waits for the log line of the client's request. @returns the route in this line; undefined without a route */
async function loggedRoute({ log }: TestGateway): Promise<string | undefined> {
  for (;;) {
    const line = log.find(text => text.includes('"msg":"request"'))
    if (line !== undefined) return (JSON.parse(line) as { route?: string }).route
    await setImmediate()
  }
}
