// Tries the Dockerfile where there is no Docker: replays its steps in empty folders, then runs what came of them.
//
// Each stage is a root file system of its own, entered by chroot in a mount namespace: the base image's Node, other
// programs of this machine in place of its, and nothing of the repository but what the steps copy. Needs Linux and root.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findNode, nodeVersion } from './base-node.mjs'
import { build, makeContext } from './build.mjs'
import { readDockerfile } from './dockerfile.mjs'
import { entering } from './root.mjs'

const repository = fileURLToPath(new URL('../..', import.meta.url))

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  console.error('the replay needs Linux and root, for chroot and mount namespaces')
  process.exit(1)
}
const work = mkdtempSync(join(tmpdir(), 'peage-replay-'))
chmodSync(work, 0o755)
process.exitCode = 1
try {
  const context = makeContext({ repository, work })
  const stages = new Map()
  let image
  const read = readDockerfile(readFileSync(join(repository, 'Dockerfile'), 'utf8'))
  const version = nodeVersion(read[0].from)
  const node = findNode(version)
  for (const stage of read) {
    image = build(stage, { context, stages, work, node })
    stages.set(stage.name, image)
  }
  await tryOut(image, version)
  process.exitCode = 0
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
} finally {
  rmSync(work, { recursive: true, force: true })
}

async function tryOut(image, version) {
  const [port, adminPort] = [await freePort(), await freePort()]
  const env = { HOST: '127.0.0.1', PORT: port, ADMIN_LISTEN: `127.0.0.1:${adminPort}` }
  env.PEAGE_HEALTH_URL = `http://127.0.0.1:${adminPort}/healthz`
  const words = [...image.entrypoint, ...image.command]
  console.log(`[run] ${words.join(' ')} as ${image.user}, the root file system read-only`)
  const check = (title, isTrue) => {
    console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${title}`)
    if (!isTrue) throw new Error(`the image does not hold: ${title}`)
  }
  const status = (...program) =>
    spawnSync('unshare', entering(image, program, { env }), { stdio: 'ignore' }).status
  check(
    "Node is the base image's",
    status('node', '-e', `process.exit(process.version === 'v${version}' ? 0 : 1)`) === 0,
  )
  check('the user is not root', !/^(0|root)\b/.test(image.user))
  check('NODE_ENV is production', image.env.NODE_ENV === 'production')
  check(
    'nothing can be written beside the volume',
    status('touch', '/app/x') !== 0 && status('touch', '/tmp/x') !== 0,
  )
  check('the volume can be written to', status('touch', '/data/x') === 0)
  check('there is no package that only development needs', status('ls', '/app/node_modules/vitest') !== 0)
  check(
    'there are no sources and no package lock',
    status('ls', '/app/src') !== 0 && status('ls', '/app/package-lock.json') !== 0,
  )
  check(
    "argon2's prebuilt binary loads and hashes",
    status(
      'node',
      '-e',
      "require('argon2').hash('x').then(hash => process.exit(hash.startsWith('$argon2id$') ? 0 : 1))",
    ) === 0,
  )
  check('the health check fails while nothing runs', status(...image.health) === 1)

  const child = spawn('unshare', entering(image, words, { env }), { stdio: ['ignore', 'inherit', 'inherit'] })
  const ended = once(child, 'exit')
  try {
    const ready = await readiness(`http://127.0.0.1:${adminPort}/readyz`, child)
    console.log(`[run] /readyz: ${JSON.stringify(ready)}`)
    check('it becomes ready', ready?.status === 'ok')
    check('the health check passes', status(...image.health) === 0)
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/auth/register`, {
      method: 'POST',
      body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }),
    })
    check('an account can be made', answer.status === 201)
    child.kill(image.stopSignal ?? 'SIGTERM')
    const [code] = await Promise.race([ended, sleep(15_000, ['not within 15 s'])])
    check('the stop signal ends it with exit 0', code === 0)
  } finally {
    child.kill('SIGKILL')
  }
}

async function readiness(url, child) {
  for (let tries = 0; tries < 300 && child.exitCode === null; tries++) {
    try {
      return await (await fetch(url)).json()
    } catch {
      await sleep(100)
    }
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise(done => server.close(done))
  return port
}
