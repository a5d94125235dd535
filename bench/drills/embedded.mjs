// The embedded database: killed during writes, on a disk that is full, in a folder that is in use or older.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startProgram, temporaryFolder } from '../processes.mjs'
import { random, setting } from './settings.mjs'
import { post } from './subjects.mjs'

const kills = setting('EMBEDDED_KILLS', 20, 3)
const token = 'the-token-of-a-drill'
const password = 'correct horse battery'
const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** @type {import('./main.mjs').Drill} */
export async function embedded(watch) {
  await killed(watch)
  await inUse(watch)
  await older(watch)
  await full(watch)
}

function writeConfig(folder) {
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0', log: { requests: false } }
admin: { listen: '127.0.0.1:0', token: ${token} }
auth: { rate_limits: { register: 0 }, hashing: { concurrency: 2 } }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
upstreams: {}
routes: []
`,
  )
  return file
}

const start = (file, before = []) => startProgram('../dist/cli.js', ['start', '-c', file], {}, before)

/** What was answered 201 is there after a kill, again and again in the same folder. */
async function killed({ expect, say }) {
  const folder = temporaryFolder()
  const file = writeConfig(folder.path)
  const acknowledged = []
  let people = 0
  for (let round = 0; round < kills; round += 1) {
    const gateway = await start(file)
    let isOver = false
    const registering = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        people += 1
        const email = `person-${people}@example.com`
        const { status } = await post(gateway.port, 'register', { email, password })
        if (status === 201) acknowledged.push(email)
      }
    })
    await sleep(300 + random() * 1_500)
    process.kill(gateway.pids[0], 'SIGKILL')
    isOver = true
    await Promise.all(registering)
    await gateway.stop()
  }
  const gateway = await start(file)
  let lost = 0
  for (const email of acknowledged) {
    const url = `http://127.0.0.1:${gateway.ports[1]}/admin/v1/users?email=${encodeURIComponent(email)}`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    if ((await answer.json()).users.length !== 1) lost += 1
  }
  await gateway.stop()
  folder.remove()
  expect(
    `killed ${kills} times during writes: nothing that was acknowledged is lost`,
    lost === 0 && acknowledged.length > 0,
    `${lost} of ${acknowledged.length} registrations`,
  )
  say(`${people - acknowledged.length} registrations were cut off`)
}

/** A second process is told by whom the folder is used. */
async function inUse({ expect }) {
  const folder = temporaryFolder()
  const file = writeConfig(folder.path)
  const gateway = await start(file)
  const second = spawnSync(process.execPath, [cli, 'start', '-c', file], { encoding: 'utf8' })
  await gateway.stop()
  folder.remove()
  expect(
    'a second process ends with 1, and says which process uses the folder',
    second.status === 1 && second.stderr.includes(String(gateway.pids[0])),
    second.stderr.trim().split('\n')[0] ?? '',
  )
}

/** A folder of an older Postgres is told apart; one of the version before is migrated, where `OLDER_PROGRAM` names that. */
async function older({ expect, say }) {
  const folder = temporaryFolder()
  const file = writeConfig(folder.path)
  const { OLDER_PROGRAM: before } = process.env
  const email = 'older@example.com'
  const program = before === undefined ? '../dist/cli.js' : join(before, 'dist/cli.js')
  const first = await startProgram(program, ['start', '-c', file])
  const { status: registered } = await post(first.port, 'register', { email, password })
  await first.stop()
  const version = join(folder.path, 'data', 'postgres', 'PG_VERSION')
  const own = readFileSync(version, 'utf8')
  writeFileSync(version, `${Number(own) - 1}\n`)
  const refused = spawnSync(process.execPath, [cli, 'start', '-c', file], { encoding: 'utf8' })
  const said = refused.stderr.trim().split('\n')[0] ?? ''
  expect(
    'a folder of an older Postgres is refused with 1, whose it is is said, and nothing in it is touched',
    refused.status === 1 &&
      said.includes(`Postgres ${Number(own) - 1}`) &&
      readFileSync(version, 'utf8') !== own &&
      !existsSync(join(folder.path, 'data', 'peage.lock')),
    said,
  )
  writeFileSync(version, own)
  const gateway = await start(file)
  const { status } = await post(gateway.port, 'login', { email, password })
  await gateway.stop()
  folder.remove()
  expect(
    before === undefined
      ? 'it is as it was'
      : 'a folder of the version before is migrated, and its users sign in',
    registered === 201 && status === 200,
    `registered with ${registered}, signed in with ${status}`,
  )
  if (before === undefined) say('no folder of the version before: OLDER_PROGRAM is not set')
}

/** No byte is left: what needs to be written is refused, the process stays, and goes on when there is room again. */
async function full({ expect }) {
  const folder = temporaryFolder()
  const file = writeConfig(folder.path)
  const data = join(folder.path, 'data')
  const script = 'mkdir -p "$0" && mount -t tmpfs -o size=160m tmpfs "$0" && exec "$@"'
  const gateway = await start(file, ['unshare', '-m', 'sh', '-c', script, data])
  const filler = `/proc/${gateway.pids[0]}/root${data}/filler`
  const register = async name =>
    (await post(gateway.port, 'register', { email: `${name}@example.com`, password })).status
  const before = await register('before')
  const block = Buffer.alloc(1 << 20)
  for (let written = true; written; ) {
    written = await appendFile(filler, block).then(
      () => true,
      () => false,
    )
  }
  const registrations = []
  const logins = []
  for (let count = 0; count < 40; count += 1) {
    registrations.push(await register(`full-${count}`))
    logins.push((await post(gateway.port, 'login', { email: 'before@example.com', password })).status)
  }
  await rm(filler)
  const freed = performance.now()
  let after = 0
  while (after !== 201 && performance.now() - freed < 10_000) {
    after = await register(`after-${Math.round(performance.now())}`)
    await sleep(100)
  }
  const tookMs = performance.now() - freed
  const isUp = await fetch(`http://127.0.0.1:${gateway.ports[1]}/healthz`).then(
    ({ status }) => status === 200,
    () => false,
  )
  const only = (statuses, allowed) => statuses.every(status => allowed.includes(status))
  const isRefused = registrations.includes(500) || logins.includes(503)
  expect(
    'a full disk: registrations are 201 or 500 and logins 200 or 503, as the spec has it, and the process stays',
    before === 201 && isRefused && only(registrations, [201, 500]) && only(logins, [200, 503]) && isUp,
    `registrations ${[...new Set(registrations)]}, logins ${[...new Set(logins)]}`,
  )
  const here = await listed(gateway, 'full-')
  expect(
    'what was acknowledged meanwhile is there',
    here === registrations.filter(status => status === 201).length,
    `${here}`,
  )
  expect(
    'with room again it goes on within 5 s',
    after === 201 && tookMs < 5_000,
    `${(tookMs / 1_000).toFixed(1)} s`,
  )
  await gateway.stop()
  folder.remove()
}

/** How many users there are whose email begins so. */
async function listed(gateway, prefix) {
  const answer = await fetch(`http://127.0.0.1:${gateway.ports[1]}/admin/v1/users?limit=200`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const { users } = await answer.json()
  return users.filter(({ email }) => email.startsWith(prefix)).length
}
