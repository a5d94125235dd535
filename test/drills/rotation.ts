// Signing keys are rotated and retired while clients use two replicas. No valid token is refused.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { kidOf } from '../support/key-load.ts'
import { cli, run } from '../support/processes.ts'
import { bearer, noRateLimits } from './accounts.ts'
import { type Replica, startReplicas } from './replicas.ts'
import { expiryOf, type Sessions, startSessions } from './sessions.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { ask } from './subjects.ts'
import type { Watch } from './watch.ts'

/** The duration of the rotations in milliseconds. */
const duration = 90_000

export async function rotation(watch: Watch): Promise<void> {
  const upstream = await startUpstream()
  try {
    const stage = await startReplicas({
      // The lifetimes are short, so that all tokens of a key expire during the drill.
      settings: `auth: { access_token_ttl: 10s, refresh_token_ttl: 12s, ${noRateLimits} }`,
      routing: `${serviceAt(upstream.port)}
routes:
  - { path: /public/small, upstream: service }`,
    })
    try {
      await onStage(stage, watch)
    } finally {
      await stage.stop()
    }
  } finally {
    await upstream.stop()
  }
}

interface Playing {
  readonly replicas: readonly Replica[]
  readonly database: Pool
  readonly file: string
}

async function onStage({ replicas, database, file }: Playing, { say, expect }: Watch): Promise<void> {
  const keys = createKeys(file)
  const unpublished: string[] = []
  const sessions = await startSessions(replicas, {
    count: 24,
    database,
    onNewKey: async kid => {
      for (const [i, { port }] of replicas.entries()) {
        if (!(await publishedAt(port)).includes(kid)) unpublished.push(`${kid} at replica ${i}`)
      }
    },
  })

  const end = performance.now() + duration
  const retired: string[] = []
  const early: string[] = []
  let rotated = 0
  const rotate = async () => {
    while (performance.now() < end) {
      await keys.rotate(['ES256', 'EdDSA', 'RS256'][rotated % 3])
      rotated += 1
    }
  }
  const retire = async () => {
    while (performance.now() < end) {
      for (const { kid, state, spent_from } of await keys.list()) {
        if (state !== 'verifies') continue
        const spentFrom = Date.parse(spent_from)
        const isSpent = spentFrom < Date.now()
        const isRetired = await keys.retire(kid).then(
          () => true,
          () => false,
        )
        if (isRetired) retired.push(kid)
        if (isRetired && !isSpent && spentFrom > Date.now()) early.push(kid)
      }
      await sleep(1_000)
    }
  }
  // Two loops rotate the keys at the same time, while a third loop retires keys.
  await Promise.all([rotate(), rotate(), retire()])

  const leaked = await takeBack(keys, sessions, replicas)
  const { calls, refreshes, logins, wrong, failures, kids } = await sessions.stop()
  say(`${calls} calls, ${refreshes} refreshes and ${logins} logins at random replicas`)
  expect('no valid token gets a 401', wrong.length === 0, `${wrong.length} ${wrong.slice(0, 5).join('; ')}`)
  expect('no other request fails', failures.length === 0, `${failures.length} ${[...new Set(failures)]}`)
  expect('at least 20 keys sign tokens', kids.size >= 20, `${kids.size} of ${rotated + 1} keys`)
  expect(
    'both replicas publish every key before its first token is used',
    unpublished.length === 0,
    unpublished.length === 0 ? 'all' : unpublished.join(', '),
  )
  expect(
    'at least 10 keys are retired, and none while its tokens are valid',
    retired.length >= 10 && early.length === 0,
    `${retired.length}`,
  )
  expect(
    'tokens of a key that is retired by force are refused at both replicas within 5 s',
    leaked.every(({ before, after }) => before === 200 && after < 5_000),
    leaked.map(({ before, after }) => `${before} before, 401 after ${after.toFixed(0)} ms`).join(', '),
  )
}

interface ListedKey {
  readonly kid: string
  readonly state: string
  /** The time when the last token of the key expires. */
  readonly spent_from: string
}

type Keys = ReturnType<typeof createKeys>

/** Returns functions that run the command `keys` with the configuration `file`. */
function createKeys(file: string) {
  const command = (...words: string[]) => run(process.execPath, [cli, 'keys', ...words, '--json', '-c', file])
  return {
    list: async () => (JSON.parse(await command('list')) as { keys: ListedKey[] }).keys,
    rotate: (algorithm = 'ES256') => command('rotate', '--alg', algorithm),
    retire: (kid: string, ...options: string[]) => command('retire', kid, ...options),
  }
}

/**
 * Retires a key by force, although a token that the key signed is still valid.
 * @returns for each replica: `before`, the status code of a request with this token before the retirement; and `after`,
 *   the milliseconds until the replica refuses the token
 */
async function takeBack(
  keys: Keys,
  sessions: Sessions,
  replicas: readonly Replica[],
): Promise<{ before: number; after: number }[]> {
  // When the key is retired, valid tokens become invalid, and replicas correctly refuse them. So the clients stop
  // first, because they record each refusal as an error.
  await sessions.pause()
  const rotating = keys.rotate()
  // After 3 s, the new key is published, but the gateway does not sign with it yet. So the old key signs the next
  // token.
  await sleep(3_000)
  const token = await sessions.newToken()
  const expiresAt = expiryOf(token)
  const before = await Promise.all(replicas.map(({ port }) => ask(port, bearer(token))))
  await rotating
  await keys.retire(kidOf(token), '--force')
  const retired = performance.now()
  return Promise.all(
    replicas.map(async ({ port }, i) => {
      for (;;) {
        const { status } = await ask(port, bearer(token))
        const after = Date.now() < expiresAt ? performance.now() - retired : Number.POSITIVE_INFINITY
        if (status === 401 || after > 5_000) return { before: before[i]?.status ?? 0, after }
        await sleep(5)
      }
    }),
  )
}

async function publishedAt(port: number): Promise<string[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`)
  const { keys } = (await answer.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}
