// Signing keys rotate and are retired while clients sign in, call and refresh on two replicas: nobody is refused wrongly.
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startReplicas } from './replicas.mjs'
import { read, startSessions } from './sessions.mjs'
import { startUpstream } from './stage.mjs'
import { ask } from './subjects.mjs'

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** Milliseconds for which keys rotate. */
const duration = 90_000

/** @type {import('./main.mjs').Drill} */
export async function rotation({ say, expect }) {
  const upstream = await startUpstream()
  try {
    const stage = await startReplicas({
      // So short that a key's last token is gone within the drill.
      settings: `auth:
  access_token_ttl: 10s
  refresh_token_ttl: 12s
  rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0 }`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service }`,
    })
    try {
      await onStage(stage, { say, expect })
    } finally {
      await stage.stop()
    }
  } finally {
    await upstream.stop()
  }
}

async function onStage({ replicas, database, file }, { say, expect }) {
  const keys = async (...words) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      cli,
      'keys',
      ...words,
      '--json',
      '-c',
      file,
    ])
    return JSON.parse(stdout)
  }
  const unpublished = []
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
  const retired = []
  const early = []
  let rotated = 0
  const rotate = async () => {
    while (performance.now() < end) {
      await keys('rotate', '--alg', ['ES256', 'EdDSA', 'RS256'][rotated % 3])
      rotated += 1
    }
  }
  const retire = async () => {
    while (performance.now() < end) {
      for (const { kid, state, spent_from } of (await keys('list')).keys) {
        if (state !== 'verifies') continue
        const isSpent = Date.parse(spent_from) < Date.now()
        const isRetired = await keys('retire', kid).then(
          () => true,
          () => false,
        )
        if (isRetired) retired.push(kid)
        if (isRetired && !isSpent && Date.parse(spent_from) > Date.now()) early.push(kid)
      }
      await sleep(1_000)
    }
  }
  // Two at once: turns that overlap.
  await Promise.all([rotate(), rotate(), retire()])

  const leaked = await takeBack(keys, sessions, replicas)
  const { calls, refreshes, logins, wrong, failures, kids } = await sessions.stop()
  say(`${calls} calls, ${refreshes} refreshes and ${logins} logins on two replicas at random`)
  expect('wrong 401', wrong.length === 0, `${wrong.length} ${wrong.slice(0, 5).join('; ')}`)
  expect('no other failure', failures.length === 0, `${failures.length} ${[...new Set(failures)]}`)
  expect('at least 20 keys had their turn', kids.size >= 20, `${kids.size} of ${rotated + 1} signed tokens`)
  expect(
    'every key was published on both replicas when its first token was seen',
    unpublished.length === 0,
    unpublished.length === 0 ? 'all' : unpublished.join(', '),
  )
  expect(
    'at least 10 keys were retired, none before its time',
    retired.length >= 10 && early.length === 0,
    `${retired.length}`,
  )
  expect(
    'a key that is retired by force takes its tokens with it everywhere within 5 s',
    leaked.every(({ before, after }) => before === 200 && after < 5_000),
    leaked.map(({ before, after }) => `${before} before, 401 after ${after.toFixed(0)} ms`).join(', '),
  )
}

/** How long after it a key's retirement is in force on each replica, for a token that would still be good. */
async function takeBack(keys, sessions, replicas) {
  // Whoever still has a token of the key is refused rightly from here on; and to end them takes longer than a token lives.
  await sessions.pause()
  const rotating = keys('rotate')
  // Before the new key's turn.
  await sleep(3_000)
  const token = await sessions.newToken()
  const { kid, expiresAt } = read(token)
  const headers = { authorization: `Bearer ${token}` }
  const before = await Promise.all(replicas.map(({ port }) => ask(port, headers)))
  await rotating
  await keys('retire', kid, '--force')
  const retired = performance.now()
  return Promise.all(
    replicas.map(async ({ port }, i) => {
      for (;;) {
        const { status } = await ask(port, headers)
        const after = Date.now() < expiresAt ? performance.now() - retired : Number.POSITIVE_INFINITY
        if (status === 401 || after > 5_000) return { before: before[i].status, after }
        await sleep(5)
      }
    }),
  )
}

async function publishedAt(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`)
  return (await answer.json()).keys.map(({ kid }) => kid)
}
