// Explains generated requests, sends them to a gateway with the same generated configuration, and compares the results.
import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { activeGuards, guardNames } from '../../../src/config/active-guards.ts'
import { createPlans } from '../../../src/config/plans.ts'
import { createExplain, type Explain, type ExplainRequest } from '../../../src/explain/explain.ts'
import { newUser, type TestUser } from '../../support/client.ts'
import { embedded, startGateway, type TestGateway } from '../../support/gateway.ts'
import { configurations, type Generated } from './configurations.ts'
import { createSender, type Echo, type Pair, type Sender, startEcho } from './exchange.ts'
import { disagreements } from './judge.ts'
import { keys, questions } from './questions.ts'

interface Plan {
  readonly seed: number
  readonly configurations: number
  /** The number of requests for each configuration. */
  readonly requests: number
  onConfiguration?(count: number): void
}

export interface Report {
  pairs: number
  readonly disagreements: Disagreement[]
  /** The number of requests for each outcome: `forwarded`, `own endpoint`, or the status and code of a refusal. */
  readonly outcomes: Record<string, number>
}

interface Disagreement {
  readonly differences: readonly string[]
  readonly question: ExplainRequest
  readonly yaml: string
}

/** Headers of the upstreams’ responses. Some of these headers must not reach the client. */
const answered: readonly Pair[] = [
  ['X-Up', 'yes'],
  ['X-Powered-By', 'echo'],
  ['X-Peage-Error', 'forged'],
  ['Access-Control-Allow-Origin', 'https://everybody.example'],
]

/** Headers that the client sends with its credential. Some of these headers must not reach the upstream. */
const forged: readonly Pair[] = [
  ['X-User-Id', '999'],
  ['x-user-plan', 'pro'],
  ['X-User-Email', 'root@example.com'],
  ['X-User-Key-Id', 'forged'],
  ['X-User-Scopes', 'a b'],
  ['X-Peage-Assertion', 'forged'],
  ['X-Forwarded-For', '198.51.100.1'],
  ['X-Forwarded-Host', 'tried.example'],
  ['X-Real-IP', '198.51.100.1'],
  ['X-Original-URL', '/api/v1/auth/login'],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['X-Debug', '1'],
  ['Cookie', 'a=b'],
  ['X-Kept', 'yes'],
]

export async function runAgreement(plan: Plan): Promise<Report> {
  const report: Report = { pairs: 0, disagreements: [], outcomes: {} }
  const upstreams = [await startEcho('north', answered), await startEcho('south', answered)] as const
  try {
    const { seed, configurations: numRuns } = plan
    const generated = fc.sample(configurations([upstreams[0].url, upstreams[1].url]), { seed, numRuns })
    for (const [index, configuration] of generated.entries()) {
      const asked = fc.sample(questions(configuration.config), { seed: seed + index, numRuns: plan.requests })
      await compare(configuration, asked, upstreams, report)
      plan.onConfiguration?.(index + 1)
    }
  } finally {
    await Promise.all(upstreams.map(upstream => upstream.close()))
  }
  return report
}

async function compare(
  { yaml, server, limits, config }: Generated,
  asked: readonly ExplainRequest[],
  upstreams: readonly Echo[],
  report: Report,
): Promise<void> {
  // The clock advances by one day for each request. Therefore, the tokens of the users must stay valid for a long time.
  const auth = ', access_token_ttl: 3000d, refresh_token_ttl: 3000d'
  const gateway = await startGateway(yaml, embedded, { server, limits, auth })
  const sender = createSender(gateway.url)
  try {
    const users = {
      free: await newKeyHolder(gateway, 'free'),
      premium: await newKeyHolder(gateway, 'premium'),
      pro: await newKeyHolder(gateway, 'pro'),
    }
    const explain = await createExplain(config, gateway.clock)
    for (const question of asked) {
      const user = question.as === 'anonymous' ? undefined : users[question.as as keyof typeof users]
      const differences = await pair({ gateway, sender, explain, upstreams, question, user, config, report })
      report.pairs += 1
      if (differences.length > 0) report.disagreements.push({ differences, question, yaml })
    }
  } finally {
    sender.close()
    await gateway.stop()
  }
}

/** A user with the generated API keys. */
interface KeyHolder extends TestUser {
  /** The IDs of the API keys. Each map key contains the scopes of an API key as JSON, for example `["a"]`. */
  readonly keyIds: ReadonlyMap<string, string>
  keyOf(scopes: readonly string[] | null): string
}

async function newKeyHolder(gateway: TestGateway, plan: string): Promise<KeyHolder> {
  const user = await newUser(gateway, plan)
  const keyOf = (scopes: readonly string[] | null) => `peage_${plan}-${JSON.stringify(scopes)}`
  const keyIds = new Map<string, string>()
  for (const { scopes } of keys) {
    const hash = createHash('sha256').update(keyOf(scopes)).digest('hex')
    const id = randomUUID()
    keyIds.set(JSON.stringify(scopes), id)
    await gateway.sql(
      "insert into api_keys (id, user_id, token_hash, name, prefix, scopes) values ($1, $2, $3, 'key', '', $4)",
      [id, user.id, hash, scopes],
    )
  }
  return { ...user, keyIds, keyOf }
}

interface Parts {
  gateway: TestGateway
  sender: Sender
  explain: Explain
  upstreams: readonly Echo[]
  question: ExplainRequest
  user: KeyHolder | undefined
  config: Generated['config']
  report: Report
}

async function pair(parts: Parts): Promise<string[]> {
  const { gateway, sender, explain, upstreams, question, user, config, report } = parts
  // Starts a new day. No use has been counted on this day yet, and all earlier rate-limit windows have ended.
  gateway.clock.at += 86_400_000
  await spend(gateway, user, question.usedToday)
  for (const { received } of upstreams) received.length = 0
  const explanation = await explain(question)
  const route = config.routes.find(({ name }) => name === explanation.route)
  // The gateway forwards the X-Forwarded headers of a trusted proxy. So if the gateway trusts the address of this test,
  // the test sends no forged X-Forwarded headers.
  const isTrusted = config.server.trusted_proxies.length > 0
  const sent: Pair[] = [
    ['Host', question.host],
    ...(user === undefined ? [] : [credentialOf(question, user)]),
    ...(isTrusted ? forged.filter(([name]) => !name.startsWith('X-Forwarded')) : forged),
    // On a public route, this API key is meant for the upstream. It is sent only on public routes, because other routes
    // would check it as a credential of the gateway.
    ...(route?.auth === 'none' && question.key === undefined
      ? [['X-API-Key', 'of-the-upstream'] as Pair]
      : []),
  ]
  const keyId = question.key && user?.keyIds.get(JSON.stringify(question.key.scopes))
  const answer = await sender.send(question.method, question.path, sent)
  const { refusal, own, guards } = explanation
  const outcome = refusal ? `${refusal.status} ${refusal.code}` : own === null ? 'forwarded' : 'own endpoint'
  report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1
  const differences = disagreements(explanation, { sent, answer, upstreams, answered, user, keyId })
  if (route !== undefined && refusal === null) {
    const passed = guards.filter(guard => guard.outcome === 'pass').map(({ guard }) => guard)
    // The guard `scope` runs only if the request has an API key. It then runs on every route with authentication, even
    // on a route without a scope.
    const decidesOnKey = question.key !== undefined && route.auth !== 'none'
    const active = activeGuards(route, createPlans(config.plans))
    const declared = guardNames.filter(guard => (guard === 'scope' ? decidesOnKey : active.includes(guard)))
    if (passed.join() !== declared.join())
      differences.push(`guards: passed ${passed}, the route has ${declared}`)
  }
  return differences
}

function credentialOf({ key }: ExplainRequest, user: KeyHolder): Pair {
  return key === undefined
    ? ['Authorization', `Bearer ${user.access}`]
    : ['X-API-Key', user.keyOf(key.scopes)]
}

async function spend(gateway: TestGateway, user: TestUser | undefined, uses: number): Promise<void> {
  if (user === undefined || uses === 0) return
  const day = new Date(gateway.clock.at).toISOString().slice(0, 10)
  await gateway.sql('update users set daily_usage = $2, last_usage_date = $3 where id = $1', [
    user.id,
    uses,
    day,
  ])
}
