// In the first case, a gateway with an embedded database is killed during writes. In other cases, another process uses
// the folder of the database, an older version created the folder, or the disk is full.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { password } from '../support/client.ts'
import { cli, type RunningProgram, startProgram, temporaryFolder } from '../support/processes.ts'
import { adminToken } from './replicas.ts'
import { random, setting } from './settings.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const kills = setting('EMBEDDED_KILLS', 20, 3)

export async function embedded(watch: Watch): Promise<void> {
  await inFolder(folder => killed(folder, watch))
  await inFolder(folder => inUse(folder, watch))
  await inFolder(folder => older(folder, watch))
  await inFolder(folder => full(folder, watch))
}

interface Folder {
  /** The path of the gateway.yaml. */
  readonly file: string
  /** The folder of the database. */
  readonly data: string
}

async function inFolder(work: (folder: Folder) => Promise<void>): Promise<void> {
  const { path, remove } = temporaryFolder()
  const file = join(path, 'gateway.yaml')
  const data = join(path, 'data')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0', log: { requests: false } }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
auth: { rate_limits: { register: 0 }, hashing: { concurrency: 2 } }
storage: { data_dir: ${JSON.stringify(data)} }
upstreams: {}
routes: []
`,
  )
  await work({ file, data })
  await remove()
}

const start = (file: string, before: readonly string[] = []) =>
  startProgram(cli, ['start', '-c', file], {}, before)

/** Starts a gateway that is expected to exit with an error. Returns its exit status and its error output. */
function startRefused(file: string): { status: number | null; stderr: string; firstLine: string } {
  const { status, stderr } = spawnSync(process.execPath, [cli, 'start', '-c', file], { encoding: 'utf8' })
  return { status, stderr, firstLine: stderr.trim().split('\n')[0] ?? '' }
}

async function register(gateway: RunningProgram, email: string): Promise<number> {
  return (await post(gateway.port, 'register', { email, password })).status
}

async function login(gateway: RunningProgram, email: string): Promise<number> {
  return (await post(gateway.port, 'login', { email, password })).status
}

/** Checks that confirmed registrations survive repeated kills in the same folder. */
async function killed({ file }: Folder, { say, expect }: Watch): Promise<void> {
  const acknowledged: string[] = []
  let people = 0
  for (let round = 0; round < kills; round += 1) {
    const gateway = await start(file)
    let isOver = false
    const registering = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        people += 1
        const email = `person-${people}@example.com`
        if ((await register(gateway, email)) === 201) acknowledged.push(email)
      }
    })
    await sleep(300 + random() * 1_500)
    process.kill(gateway.pid, 'SIGKILL')
    isOver = true
    await Promise.all(registering)
    await gateway.stop()
  }
  const gateway = await start(file)
  let lost = 0
  for (const email of acknowledged) {
    if ((await listUsers(gateway, `email=${encodeURIComponent(email)}`)).length !== 1) lost += 1
  }
  await gateway.stop()
  expect(
    `killed ${kills} times during writes: no confirmed registration is lost`,
    lost === 0 && acknowledged.length > 0,
    `${lost} of ${acknowledged.length} lost`,
  )
  say(`${people - acknowledged.length} registrations got no response because of a kill`)
}

async function inUse({ file }: Folder, { expect }: Watch): Promise<void> {
  const gateway = await start(file)
  const second = startRefused(file)
  await gateway.stop()
  expect(
    'a second process exits with 1, and its message names the process that uses the folder',
    second.status === 1 && second.stderr.includes(String(gateway.pid)),
    second.firstLine,
  )
}

/** Checks that folders of an older Postgres are refused, and that folders of the previous release are migrated. */
async function older({ file, data }: Folder, { say, expect }: Watch): Promise<void> {
  const { OLDER_PROGRAM: previous } = process.env
  const email = 'older@example.com'
  const program = previous === undefined ? cli : join(previous, 'dist/cli.js')
  const first = await startProgram(program, ['start', '-c', file])
  const registered = await register(first, email)
  await first.stop()
  const version = join(data, 'postgres', 'PG_VERSION')
  const own = readFileSync(version, 'utf8')
  const lower = Number(own) - 1
  writeFileSync(version, `${lower}\n`)
  const refused = startRefused(file)
  expect(
    'a folder of an older Postgres is refused with exit status 1 and its version, and stays unchanged',
    refused.status === 1 &&
      refused.firstLine.includes(`Postgres ${lower}`) &&
      readFileSync(version, 'utf8') !== own &&
      !existsSync(join(data, 'peage.lock')),
    refused.firstLine,
  )
  writeFileSync(version, own)
  const gateway = await start(file)
  const signedIn = await login(gateway, email)
  await gateway.stop()
  expect(
    previous === undefined
      ? 'the folder works again with its own version'
      : 'a folder of the previous release is migrated, and its users can log in',
    registered === 201 && signedIn === 200,
    `registration ${registered}, login ${signedIn}`,
  )
  if (previous === undefined) say('the previous release was not tested, because OLDER_PROGRAM is not set')
}

/** Checks that the gateway on a full disk refuses writes, keeps running, and recovers when there is space again. */
async function full({ file, data }: Folder, { expect }: Watch): Promise<void> {
  const script = 'mkdir -p "$0" && mount -t tmpfs -o size=160m tmpfs "$0" && exec "$@"'
  const gateway = await start(file, ['unshare', '-m', 'sh', '-c', script, data])
  const filler = `/proc/${gateway.pid}/root${data}/filler`
  const before = await register(gateway, 'before@example.com')
  const block = Buffer.alloc(1 << 20)
  for (let written = true; written; ) {
    written = await appendFile(filler, block).then(
      () => true,
      () => false,
    )
  }
  const registrations: number[] = []
  const logins: number[] = []
  for (let count = 0; count < 40; count += 1) {
    registrations.push(await register(gateway, `full-${count}@example.com`))
    logins.push(await login(gateway, 'before@example.com'))
  }
  await rm(filler)
  const freed = performance.now()
  let after = 0
  while (after !== 201 && performance.now() - freed < 10_000) {
    after = await register(gateway, `after-${Math.round(performance.now())}@example.com`)
    await sleep(100)
  }
  const tookMs = performance.now() - freed
  const isUp = await fetch(`http://127.0.0.1:${gateway.ports[1]}/healthz`).then(
    ({ status }) => status === 200,
    () => false,
  )
  const only = (statuses: readonly number[], allowed: readonly number[]) =>
    statuses.every(status => allowed.includes(status))
  const isRefused = registrations.includes(500) || logins.includes(503)
  expect(
    'full disk: registrations get 201 or 500, logins 200 or 503, and the process keeps running',
    before === 201 && isRefused && only(registrations, [201, 500]) && only(logins, [200, 503]) && isUp,
    `registrations ${[...new Set(registrations)]}, logins ${[...new Set(logins)]}`,
  )
  const stored = (await listUsers(gateway, 'limit=200')).filter(email => email.startsWith('full-')).length
  expect(
    'full disk: confirmed registrations are stored',
    stored === registrations.filter(status => status === 201).length,
    `${stored}`,
  )
  expect(
    'full disk: the gateway recovers within 5 s after space is freed',
    after === 201 && tookMs < 5_000,
    `${(tookMs / 1_000).toFixed(1)} s`,
  )
  await gateway.stop()
}

/** @param query the query string for `/admin/v1/users` @returns the emails of the users in the response */
async function listUsers(gateway: RunningProgram, query: string): Promise<string[]> {
  const answer = await fetch(`http://127.0.0.1:${gateway.ports[1]}/admin/v1/users?${query}`, {
    headers: { authorization: `Bearer ${adminToken}` },
  })
  const { users } = (await answer.json()) as { users: { email: string }[] }
  return users.map(({ email }) => email)
}
