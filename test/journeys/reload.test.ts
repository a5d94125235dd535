// The configuration changes while the gateway serves requests. A change applies completely or not at all, and
// interrupts no client.

import { mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { call, newUser } from '../support/client.ts'
import { replaceFile, startGateway, type TestGateway } from '../support/gateway.ts'
import { runProgram } from '../support/program.ts'
import { scrape } from '../support/scrape.ts'
import { poolSize } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

const soon = { timeout: 10_000, interval: 25 }

let gateway: TestGateway
let upstream: Upstream
let sockets: WebSocketUpstream

const routing = () => `upstreams:
  echo: { targets: ['${upstream.url}'] }
  sockets: { targets: ['${sockets.url}'] }
routes:
  - { name: public, path: /public/*, upstream: echo, auth: none }
  - { name: any, path: /any/*, upstream: echo }
  - { name: counted, path: /counted, upstream: echo, free_daily: true }
  - { name: few, path: /few, upstream: echo, auth: none, rate_limit: 2/1h }
  - { name: chat, path: /chat, upstream: sockets, websocket: true }
`

beforeEach(async () => {
  upstream = await startUpstream()
  sockets = await startWebSocketUpstream()
  gateway = await startGateway(routing())
})
afterEach(async () => {
  await gateway?.stop()
  await upstream.close()
  await sockets.close()
})

/** Saves the changes without a reload, so that the gateway has to notice the new file. */
async function save(...changes: [from: string, to: string][]): Promise<void> {
  let text = await readFile(gateway.file, 'utf8')
  for (const [from, to] of changes) {
    expect(text).toContain(from)
    text = text.replace(from, to)
  }
  await replaceFile(gateway.file, text)
}

/** Saves the changes and reloads the configuration. */
async function change(...changes: [from: string, to: string][]): Promise<void> {
  await save(...changes)
  await gateway.reload()
  expect(gateway.refused).toEqual([])
}

const statusOf = async (path: string, token?: string) =>
  (await call(gateway.url, 'GET', path, token === undefined ? {} : { token })).status

async function reloads(): Promise<{ success: number; failure: number; isLastGood: number }> {
  const page = await scrape(gateway.admin)
  const count = (result: string) => page.value('peage_config_reloads_total', { result })
  return {
    success: count('success'),
    failure: count('failure'),
    isLastGood: page.value('peage_config_last_reload_successful'),
  }
}

const logged = (sentence: string) =>
  gateway.log.filter(line => line.includes(sentence)).map(line => JSON.parse(line))

describe('a saved change', () => {
  it('takes effect soon after the new file is renamed into place, and the log has a summary of the change', async () => {
    await save(
      [
        '  - { name: any, path: /any/*, upstream: echo }\n',
        '  - { name: other, path: /other, upstream: echo, auth: none }\n',
      ],
      ['path: /few,', 'path: /a-few,'],
    )
    await expect.poll(() => statusOf('/other'), soon).toBe(200)
    expect(await statusOf('/any/x')).toBe(404)
    expect(await statusOf('/a-few')).toBe(200)
    expect(logged('configuration reloaded')).toMatchObject([
      { level: 30, routes: { added: 1, removed: 1, changed: 1 } },
    ])
    expect(logged('configuration reloaded')[0]).not.toHaveProperty('sections')
    expect(await reloads()).toEqual({ success: 1, failure: 0, isLastGood: 1 })
  })

  it('takes effect when a link in the path of the file gets a new target, as in Kubernetes', async () => {
    const folder = dirname(gateway.file)
    const text = await readFile(gateway.file, 'utf8')
    const mount = async (version: string, content: string) => {
      await mkdir(join(folder, version))
      await writeFile(join(folder, version, 'gateway.yaml'), content)
      await symlink(version, join(folder, '..new'))
      await rename(join(folder, '..new'), join(folder, '..data'))
    }
    await mount('..1', text)
    await symlink('..data/gateway.yaml', `${gateway.file}.link`)
    await rename(`${gateway.file}.link`, gateway.file)
    await mount('..2', text.replace('/public/*', '/open/*'))
    await expect.poll(() => statusOf('/open/x'), soon).toBe(200)
    expect(await statusOf('/public/x')).toBe(404)
    expect((await reloads()).success).toBe(1)
  })

  it('causes no reload if the content of the file stays the same', async () => {
    await save()
    await utimes(gateway.file, new Date(), new Date())
    await writeFile(gateway.file, await readFile(gateway.file, 'utf8'))
    await save(['/public/*', '/open/*'])
    await expect.poll(() => statusOf('/open/x'), soon).toBe(200)
    expect((await reloads()).success).toBe(1)
  })
})

describe('a bad file', () => {
  const bad: [from: string, to: string][] = [
    ['path: /few,', 'path: /few, plan: [pro],'],
    ['upstream: sockets', 'upstream: nowhere'],
    ['free_daily: 1 }', 'free_daily: "${NO_SUCH_NAME}" }'],
  ]

  it('is refused once, with the problems that `peage check` prints; the old file stays active until a good one follows', async () => {
    await save(...bad, ['/public/*', '/open/*'])
    await expect.poll(() => gateway.refused.length, soon).toBe(3)
    const { stdout, code } = await runProgram(['check', '-c', gateway.file], dirname(gateway.file))
    expect([code, stdout]).toEqual([2, gateway.refused.map(line => `${line}\n`).join('')])
    expect(logged('rejected')).toMatchObject([{ level: 50, problems: gateway.refused }])
    expect(await reloads()).toEqual({ success: 0, failure: 1, isLastGood: 0 })
    expect([await statusOf('/public/x'), await statusOf('/open/x')]).toEqual([200, 404])

    for (const [from, to] of bad) await save([to, from])
    await expect.poll(() => statusOf('/open/x'), soon).toBe(200)
    expect((await reloads()).isLastGood).toBe(1)
  })

  it('is refused once while it stays the same, and again for each requested reload', async () => {
    await save(...bad)
    await expect.poll(async () => (await reloads()).failure, soon).toBe(1)
    // During this time, the gateway checks the file several times.
    await new Promise(resolve => setTimeout(resolve, 1_000))
    expect((await reloads()).failure).toBe(1)
    await gateway.reload()
    expect((await reloads()).failure).toBe(2)
  })

  it('is refused if it is not YAML or does not exist', async () => {
    await writeFile(gateway.file, 'routes: [')
    await expect.poll(() => gateway.refused.length, soon).toBeGreaterThan(0)
    await rm(gateway.file)
    await expect.poll(() => gateway.refused.at(-1), soon).toMatch(/gateway\.yaml:1:1 {2}\(file\) /)
    expect(await statusOf('/public/x')).toBe(200)
  })
})

it('several simultaneous reload requests cause only two reloads', async () => {
  await Promise.all([gateway.reload(), gateway.reload(), gateway.reload(), gateway.reload()])
  expect((await reloads()).success).toBe(2)
})

describe('a client that is already served', () => {
  it('gets its whole response from the old configuration if its route and upstream change meanwhile', async () => {
    const pendingResponses: ServerResponse[] = []
    upstream.answer = (_, response) => pendingResponses.push(response)
    const slow = call(gateway.url, 'GET', '/public/slow')
    const streamed = fetch(`${gateway.url}/public/streamed`)
    await expect.poll(() => pendingResponses.length, soon).toBe(2)
    pendingResponses[1]?.write('a')
    const stream = await streamed
    await change(['/public/*', '/open/*'], [`['${upstream.url}'] }`, `['${upstream.url}'], connections: 3 }`])
    const closed = new Promise(resolve => pendingResponses[0]?.socket?.once('close', resolve))
    upstream.answer = undefined
    expect([await statusOf('/open/x'), await statusOf('/public/x')]).toEqual([200, 404])
    pendingResponses[0]?.end('late but whole')
    expect(await slow).toMatchObject({ status: 200, text: 'late but whole' })
    pendingResponses[1]?.end('b')
    expect(await stream.text()).toBe('ab')
    // After the last request to the old upstream, the gateway closes the connection at once. It does not wait for an
    // idle timeout.
    await closed
  })

  it('keeps its WebSocket if the upstream changes or the route is removed, and its user is still checked', async () => {
    const user = await newUser(gateway, 'pro')
    const { socket, next, closed } = await openWebSocket(`${gateway.url}/chat`, { token: user.access })
    await change([`['${sockets.url}'] }`, `['${sockets.url}'], connections: 3 }`])
    await change([/ {2}- \{ name: chat.*\n/.exec(routing())?.[0] as string, ''])
    socket.send('still there')
    expect(await next()).toBe('still there')
    await gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    expect((await closed).code).toBe(1008)
  })
})

describe('a series of reloads', () => {
  it('loses no request, stream or WebSocket, and leaves no connection of old configurations open', async () => {
    const user = await newUser(gateway)
    await gateway.sql(
      "update users set daily_usage = 9, last_usage_date = (now() at time zone 'utc')::date where id = $1",
      [user.id],
    )
    const connections = new Set<unknown>()
    upstream.answer = async (request, response) => {
      const { socket } = request
      if (!connections.has(socket)) socket.once('close', () => connections.delete(socket))
      connections.add(socket)
      response.write('begun, ')
      if (request.url === '/public/slow') await new Promise(resolve => setTimeout(resolve, 300))
      response.end('ended')
    }
    const chat = await openWebSocket(`${gateway.url}/chat`, { token: user.access })
    let isOver = false
    const said: string[] = []
    const again = async (work: () => Promise<string>) => {
      while (!isOver) said.push(await work().catch(error => `failed: ${error}`))
    }
    const ask = async (path: string, token?: string) => {
      const { status, text } = await call(gateway.url, 'GET', path, token === undefined ? {} : { token })
      return `${path} ${status === 200 ? text : status}`
    }
    const load = [
      again(() => ask('/public/quick')),
      again(() => ask('/public/slow')),
      again(() => ask('/counted', user.access)),
      again(async () => {
        chat.socket.send('said')
        return `chat ${await chat.next()}`
      }),
    ]
    for (let turn = 1; turn <= 30; turn += 1) {
      await change(
        [
          turn === 1 ? `['${upstream.url}'] }` : `connections: ${turn} }`,
          turn === 1
            ? `['${upstream.url}'], connections_per_client: 2, connections: 2 }`
            : `connections: ${turn + 1} }`,
        ],
        [
          /free_daily: . }/.exec(await readFile(gateway.file, 'utf8'))?.[0] as string,
          `free_daily: ${1 + (turn % 2)} }`,
        ],
        ['routes:\n', `routes:\n  - { path: /turn-${turn}, upstream: echo }\n`],
      )
      const before = said.length
      await expect.poll(() => said.length, soon).toBeGreaterThan(before + 4)
    }
    isOver = true
    await Promise.all(load)
    expect([...new Set(said)].sort()).toEqual([
      '/counted 429',
      '/public/quick begun, ended',
      '/public/slow begun, ended',
      'chat said',
    ])
    expect((await reloads()).success).toBeGreaterThanOrEqual(30)
    // Only the connections of the latest configuration stay open.
    await expect.poll(() => connections.size, soon).toBeLessThanOrEqual(2)
    chat.socket.close()
  })
})

describe('a reload', () => {
  it('keeps open upstream connections and rate limit counts', async () => {
    const ports = new Set<number | undefined>()
    upstream.answer = (request, response) => {
      ports.add(request.socket.remotePort)
      response.end()
    }
    expect([await statusOf('/public/x'), await statusOf('/few')]).toEqual([200, 200])
    await change(['/public/*', '/open/*'])
    expect([await statusOf('/open/x'), await statusOf('/few'), await statusOf('/few')]).toEqual([
      200, 200, 429,
    ])
    expect(ports.size).toBe(1)
    await change(['2/1h', '3/1h'])
    expect(await statusOf('/few')).toBe(200)
  })

  it('keeps cached users and verified tokens', async () => {
    const user = await newUser(gateway)
    expect(await statusOf('/any/x', user.access)).toBe(200)
    const looks = () => gateway.statements.filter(text => /from users u/.test(text)).length
    const before = looks()
    await change(['/public/*', '/open/*'])
    expect(await statusOf('/any/x', user.access)).toBe(200)
    expect(looks()).toBe(before)
  })
})

describe('a change to', () => {
  it('free_daily takes effect at once, even for users who have no use left today', async () => {
    const user = await newUser(gateway)
    const use = () => call(gateway.url, 'GET', '/counted', { token: user.access })
    expect([(await use()).status, (await use()).status, (await use()).status]).toEqual([200, 429, 429])
    await change(['free_daily: 1 }', 'free_daily: 2 }'])
    expect((await use()).status).toBe(200)
    expect((await use()).body.error).toContain('2 courses/jour')
    await change(['free_daily: 2 }', 'free_daily: 1 }'])
    expect((await use()).body.error).toContain('1 course/jour')
  })

  it('the issuer invalidates existing tokens at once', async () => {
    const user = await newUser(gateway)
    expect(await statusOf('/any/x', user.access)).toBe(200)
    await change(['auth: { ', 'auth: { issuer: another, '])
    expect(await statusOf('/any/x', user.access)).toBe(401)
    expect(await statusOf('/any/x', (await newUser(gateway)).access)).toBe(200)
  })

  it('limits, URLs and lifetimes takes effect at built-in endpoints with the next request', async () => {
    const user = await newUser(gateway)
    const lifetimeOf = (token: string) => {
      const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
      return exp - iat
    }
    await change(
      ['refresh: 0', 'refresh: 1/1h'],
      ['auth: { ', 'auth: { access_token_ttl: 7m, '],
      ['upstreams:\n', "subscription: { upgrade_url: 'https://pay.example.com/{plan}' }\nupstreams:\n"],
    )
    const refresh = (refresh_token: string) =>
      call(gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })
    const refreshed = await refresh(user.refresh)
    expect(lifetimeOf(String(refreshed.body.access_token))).toBe(420)
    expect((await refresh(String(refreshed.body.refresh_token))).status).toBe(429)
    const upgrade = await call(gateway.url, 'GET', '/api/v1/subscription/upgrade', { token: user.access })
    expect(upgrade.body.checkout_url).toBe('https://pay.example.com/premium')
  })

  it('admin tokens and routes takes effect on the admin listener', async () => {
    const list = (token: string) => call(gateway.admin, 'GET', '/admin/v1/routes', { token })
    const another = 'another-token-for-operators-0123456789'
    expect((await list(gateway.adminToken)).status).toBe(200)
    await change([`token: ${gateway.adminToken}`, `token: ${another}`], ['name: public', 'name: open'])
    expect((await list(gateway.adminToken)).status).toBe(401)
    expect(((await list(another)).body.routes as { name: string }[])[0]?.name).toBe('open')
  })

  it('the hashing limits takes effect on the admin listener too', async () => {
    await change(['auth: { ', 'auth: { hashing: { concurrency: 1, queue: 0 }, '])
    let created = 0
    const create = async () => {
      created += 1
      const body = { email: `made${created}@example.com`, password: 'un mot de passe' }
      return (await call(gateway.admin, 'POST', '/admin/v1/users', { token: gateway.adminToken, body }))
        .status
    }
    const statuses = async () => new Set(await Promise.all(Array.from({ length: 12 }, create)))
    expect(await statuses()).toEqual(new Set([201, 503]))
    await change(['queue: 0', 'queue: 12'])
    expect(await statuses()).toEqual(new Set([201]))
  })

  it('the log level or request logging takes effect at once', async () => {
    const lines = () => logged('"msg":"request"').length
    await statusOf('/public/1')
    await expect.poll(lines, soon).toBe(1)
    await change(['drain_timeout: 2s', 'drain_timeout: 2s, log: { requests: false }'])
    await statusOf('/public/2')
    await change(['log: { requests: false }', 'log: { level: error }'])
    await statusOf('/public/3')
    await change(['log: { level: error }', 'log: { level: info }'])
    await statusOf('/public/4')
    await expect
      .poll(() => logged('"msg":"request"').map(({ path }) => path), soon)
      .toEqual(['/public/1', '/public/4'])
  })

  it('an upstream stops its old health checks', async () => {
    const checks: string[] = []
    upstream.answer = (request, response) => {
      checks.push(String(request.url))
      response.end()
    }
    const checked = (path: string) => `['${upstream.url}'], health: { path: ${path}, interval: 50ms } }`
    await change([`['${upstream.url}'] }`, checked('/one')])
    await expect.poll(() => checks.includes('/one'), soon).toBe(true)
    await change([checked('/one'), checked('/two')])
    await expect.poll(() => checks.includes('/two'), soon).toBe(true)
    checks.length = 0
    await expect.poll(() => checks.length, soon).toBeGreaterThan(5)
    expect(checks).not.toContain('/one')
  })

  it('listen addresses or storage does not take effect and is logged with a hint to restart', async () => {
    await change(
      ["listen: '127.0.0.1:0', drain", "listen: '127.0.0.1:1', drain"],
      [`pool: ${poolSize}`, 'pool: 3'],
      ['auth: { ', 'auth: { key_secret: a secret of these tests, key_secret_old: a secret before, '],
      ['/public/*', '/open/*'],
    )
    const said = logged('restart the gateway to apply the change')
    expect(said.map(({ level, key, line }) => [level, key, line])).toEqual([
      [40, 'server.listen', 1],
      [40, 'storage.pool', 3],
      [40, 'auth.key_secret', 4],
      [40, 'auth.key_secret_old', 4],
    ])
    expect(JSON.stringify(said)).not.toContain('a secret')
    expect(await statusOf('/open/x')).toBe(200)
    await change(['admin: {', '# admin: {'])
    expect(logged('admin changed; restart')).toHaveLength(1)
    expect((await call(gateway.admin, 'GET', '/healthz')).status).toBe(200)
  })
})

describe('key files', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-reload-keys-'))
    for (const name of ['old', 'new']) {
      await writeFile(join(folder, name), (await generatePrivateJwk('ES256')).text)
    }
    await gateway.stop()
    gateway = await startGateway(routing(), undefined, { auth: `, keys: [${folder}/old]` })
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('can be added, moved to first place and removed; tokens of a removed key are invalid at once', async () => {
    const old = await newUser(gateway)
    await change([`[${folder}/old]`, `[${folder}/new, ${folder}/old]`])
    const young = await newUser(gateway)
    const both = async () => [await statusOf('/any/x', old.access), await statusOf('/any/x', young.access)]
    expect(await both()).toEqual([200, 200])
    await change([`[${folder}/new, ${folder}/old]`, `[${folder}/new]`])
    expect(await both()).toEqual([401, 200])
    const refresh = { body: { refresh_token: old.refresh } }
    expect((await call(gateway.url, 'POST', '/api/v1/auth/refresh', refresh)).status).toBe(401)
  })

  it('are read again on a requested reload, even if their names are the same', async () => {
    const old = await newUser(gateway)
    expect(await statusOf('/any/x', old.access)).toBe(200)
    await rename(join(folder, 'new'), join(folder, 'old'))
    await gateway.reload()
    expect(await statusOf('/any/x', old.access)).toBe(401)
  })
})
