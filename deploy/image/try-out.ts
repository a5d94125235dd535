// Runs the image under the conditions of a strict orchestrator: the root file system is read-only, and the process
// cannot gain rights. The run with the embedded database has a writable volume. The run with Postgres and Redis has no
// volume and an arbitrary user ID.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/servers.ts'
import { openServices } from '../../test/support/stores.ts'
import { entering, type Image } from './root.ts'

type Environment = Readonly<Record<string, string>>

/** A user and a group that do not exist in the image. OpenShift, or `runAsUser` in Kubernetes, can select such IDs. */
const stranger = '64123:64123'

/**
 * @param version the version of Node in the base image
 * @throws Error at the first failed check
 */
export async function tryOut(image: Image, version: string): Promise<void> {
  lookAround(image, version)
  const upstream = createServer((request, response) => response.end(request.headers['x-user-id'] ?? ''))
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  const behind = { UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` }
  try {
    await tryEmbedded(image, behind)
    await tryWithStores({ ...image, user: stranger, volumes: [] }, behind)
  } finally {
    upstream.close()
  }
}

function check(title: string, isTrue: boolean): void {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${title}`)
  if (!isTrue) throw new Error(`check of the image failed: ${title}`)
}

function statusOf(image: Image, program: readonly string[], env: Environment = {}): number | null {
  return spawnSync('unshare', entering(image, program, { env }), { stdio: 'ignore' }).status
}

function outputOf(image: Image, program: readonly string[], env: Environment): string {
  const { stdout, stderr } = spawnSync('unshare', entering(image, program, { env }), { encoding: 'utf8' })
  return stdout + stderr
}

function lookAround(image: Image, version: string): void {
  const status = (...program: string[]) => statusOf(image, program)
  const node = (script: string) => status('node', '-e', `process.exit(${script} ? 0 : 1)`)
  check('Node has the version of the base image', node(`process.version === 'v${version}'`) === 0)
  check('the user is not root', !/^(0|root)\b/.test(image.user))
  const rights = `/^(Cap\\w+:\\s0+\\n){5}NoNewPrivs:\\s1$/m.test(fs.readFileSync('/proc/self/status', 'utf8'))`
  check('the process has no capabilities and cannot gain any', node(rights) === 0)
  check('NODE_ENV is production', image.env.NODE_ENV === 'production')
  check(
    'only the volume is writable',
    ['/app/x', '/tmp/x', '/etc/x', '/x'].every(path => status('touch', path) !== 0),
  )
  check('the volume is writable', status('touch', '/data/x') === 0)
  check('the image contains no development packages', status('ls', '/app/node_modules/vitest') !== 0)
  check(
    'the image contains no sources and no package-lock.json',
    status('ls', '/app/src') !== 0 && status('ls', '/app/package-lock.json') !== 0,
  )
  const reads = outputOf(image, [...image.entrypoint, '--version'], { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' })
  check('the program loads its compile cache', /dist\/run-\w+\.js was accepted/.test(reads))
  const hashes =
    "require('argon2').hash('x').then(hash => process.exit(hash.startsWith('$argon2id$') ? 0 : 1))"
  check('the prebuilt binary of argon2 loads and hashes', status('node', '-e', hashes) === 0)
  check('the health check fails while no gateway runs', status(...image.health) === 1)
}

async function tryEmbedded(image: Image, behind: Environment): Promise<void> {
  const ada = { email: 'ada@example.com', password: 'correct horse battery' }
  const refused = await start({ ...image, volumes: [] }, behind, 'embedded database without a volume')
  check(
    'the gateway exits if no folder is writable',
    refused.isReady === false && (await refused.ended)[0] !== 0,
  )
  check('the gateway prints the reason', refused.said().includes('cannot write to the data folder /data'))

  const operators = { ...behind, PEAGE_ADMIN_TOKEN: 'a-token-of-32-characters-01234567' }
  const first = await start(image, operators, 'embedded database')
  try {
    check('the gateway becomes ready', first.isReady)
    check('the health check passes', statusOf(image, image.health, first.env) === 0)
    check('an account can be registered', (await first.post('register', ada)).status === 201)
    const console_ = await fetch(`${first.admin}/console`)
    check(
      'the admin listener serves the console',
      console_.status === 200 && (await console_.text()).includes('/console/assets/'),
    )
  } finally {
    await first.stop()
  }
  const second = await start(image, behind, 'embedded database with the volume of the first run')
  try {
    check('the account exists after a restart', (await second.post('login', ada)).status === 200)
  } finally {
    await second.stop()
  }
}

async function tryWithStores(image: Image, behind: Environment): Promise<void> {
  const services = await openServices()
  if (services === undefined)
    return console.log('skipped the run with Postgres and Redis, because they are not available')
  const stores = { DATABASE_URL: await services.createDatabase(), REDIS_URL: await services.createRedis() }
  const env = { ...behind, ...stores, PEAGE_KEY_SECRET: 'a-secret-of-32-characters-012345' }
  check('no folder is writable', statusOf(image, ['touch', '/data/x']) !== 0)
  const gateway = await start(image, env, `with Postgres and Redis (${services.origin})`)
  try {
    check('the gateway becomes ready', gateway.isReady)
    const ada = { email: 'ada@example.com', password: 'correct horse battery' }
    const { user_id } = (await (await gateway.post('register', ada)).json()) as { user_id: number }
    const { access_token } = (await (await gateway.post('login', ada)).json()) as { access_token: string }
    const headers = { authorization: `Bearer ${access_token}` }
    const use = () => fetch(`${gateway.url}/api/v1/courses/1`, { headers })
    const answer = await use()
    check(
      'a request reaches the upstream',
      answer.status === 200 && (await answer.text()) === String(user_id),
    )
    check('the second use of the day is refused', (await use()).status === 429)
    const listed = [...image.entrypoint, 'users', 'list']
    check('commands can run while the gateway runs', statusOf(image, listed, gateway.env) === 0)
  } finally {
    await gateway.stop()
  }
}

/** Starts the gateway in the image. Waits until the gateway is ready or has ended, but only for about 30 s. */
async function start(image: Image, settings: Environment, title: string) {
  const [port, adminPort] = [await freePort(), await freePort()]
  const admin = `http://127.0.0.1:${adminPort}`
  const env = {
    ...settings,
    HOST: '127.0.0.1',
    PORT: String(port),
    ADMIN_LISTEN: `127.0.0.1:${adminPort}`,
    PEAGE_HEALTH_URL: `${admin}/healthz`,
  }
  const words = [...image.entrypoint, ...image.command]
  console.log(`[run] ${words.join(' ')} as ${image.user}, read-only root file system, ${title}`)
  const child = spawn('unshare', entering(image, words, { env }), { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      said += chunk
    })
  }
  const isReady = await becomesReady(`${admin}/readyz`, child)
  if (!isReady) console.log(said)
  const url = `http://127.0.0.1:${port}`
  return {
    ...{ url, admin, env, isReady, ended },
    said: () => said,
    post: (endpoint: string, body: object) =>
      fetch(`${url}/api/v1/auth/${endpoint}`, { method: 'POST', body: JSON.stringify(body) }),
    /** Sends the image's stop signal. @throws Error if the gateway does not exit with status 0 within 15 s */
    async stop() {
      child.kill(image.stopSignal ?? 'SIGTERM')
      const [code] = await Promise.race([ended, sleep(15_000, ['not within 15 s'] as const)])
      child.kill('SIGKILL')
      check('the gateway exits with status 0 after the stop signal', code === 0)
    },
  }
}

async function becomesReady(url: string, child: ChildProcess): Promise<boolean> {
  for (let tries = 0; tries < 300 && child.exitCode === null; tries++) {
    try {
      const { status } = (await (await fetch(url)).json()) as { status: string }
      if (status === 'ok') return true
    } catch {
      // The program does not listen yet, so the loop tries again.
    }
    await sleep(100)
  }
  return false
}
