// If the host of a target is a name, the gateway uses all addresses of the name. The tests use a real name server.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest'
import { courses } from '../support/certificates.ts'
import { call } from '../support/client.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { describeWithNameServer } from '../support/services.ts'

const addresses = ['127.0.11.1', '127.0.11.2', '127.0.11.3'] as const
const [first, second, third] = addresses
const soon = { timeout: 15_000, interval: 20 }

describeWithNameServer('a target whose host is a name', () => {
  let names: NameServer
  let folder: string
  let servers: Server[]
  let port: number
  /** All tests share one gateway, because a start takes seconds of CPU time. Each test uses its own host name. */
  let gateway: Program
  /** The addresses at which the upstream fails its health check. */
  const sick = new Set<string>()
  /**
   * Contains each connection on which the upstream received a request. `host` is the latest Host header, and `address`
   * is the address of the upstream.
   */
  const connections = new Map<Socket, { host: string | undefined; address: string }>()
  /** Responses of the upstream that have begun but not ended. */
  const begun: { address: string; response: ServerResponse }[] = []
  /** An upstream with TLS. `greeted` contains the SNI names of its connections. */
  let receiver: Receiver
  const greeted: unknown[] = []

  beforeAll(async () => {
    names = await startNameServer(inject('nameServerBin'))
    folder = await mkdtemp(join(tmpdir(), 'peage-names-test-'))
    servers = []
    port = 0
    for (const address of addresses) {
      const server = createServer((request, response) => {
        if (request.url === '/health' && sick.has(address)) response.statusCode = 500
        const { host } = request.headers
        connections.set(request.socket, { host, address })
        if (request.url?.endsWith('begin')) {
          begun.push({ address, response })
          response.write('{ "begun": true')
        } else response.end(JSON.stringify({ address, host }))
      })
      await new Promise<void>(resolve => server.listen(port, address, resolve))
      port = (server.address() as AddressInfo).port
      servers.push(server)
    }
    const greet = ({ socket }: { socket: unknown }, response: ServerResponse) => {
      greeted.push((socket as TLSSocket).servername)
      response.end('{}')
    }
    receiver = await startReceiver(courses, greet, third)
    for (const host of ['courses.internal', 'other.internal']) await names.setAddresses(host, [third])
    for (const name of ['even', 'few']) await names.setAddresses(`${name}.test`, addresses)
    for (const name of ['follows', 'silent', 'health', 'once', 'reload'])
      await names.setAddresses(`${name}.test`, [first])
    for (const name of ['meta', 'rawmeta'])
      await names.setAddresses(`${name}.test`, ['169.254.169.254', '0.0.0.0'])
    await configure()
    gateway = await startProgram(file(), {}, false, names.command)
  })
  afterEach(() => {
    sick.clear()
    names.resume()
  })
  afterAll(async () => {
    gateway?.child.kill('SIGTERM')
    await gateway?.ended
    for (const server of servers) server.closeAllConnections()
    await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
    await receiver?.close()
    await names.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const file = () => join(folder, 'gateway.yaml')

  /**
   * Writes the configuration. Each upstream `x` has a route `/x` and a target with the host `x.test`.
   * @param reload the settings of the upstream `reload`
   */
  async function configure(reload = `targets: ['${target('reload')}']`): Promise<void> {
    const every = 'resolve: { every: 1s }'
    const upstreams = {
      even: 'resolve: {}',
      few: 'resolve: { every: 1s, most: 2 }',
      follows: every,
      silent: every,
      late: every,
      health: `${every}, health: { path: /health, interval: 200ms }`,
      meta: every,
      rawmeta: 'resolve: false',
      once: 'resolve: false',
    }
    const lines = Object.entries(upstreams).map(
      ([name, rest]) => `  ${name}: { targets: ['${target(name)}'], ${rest} }`,
    )
    for (const name of ['courses', 'other'])
      lines.push(
        `  ${name}: { targets: ['https://${name}.internal:${receiver.port}'], tls: { ca: '${courses.files.cert}' } }`,
      )
    const routes = [...Object.keys(upstreams), 'courses', 'other', 'reload'].map(
      name => `  - { path: /${name}, upstream: ${name}, auth: none }`,
    )
    await writeFile(
      file(),
      `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0', token: a-token-for-operators-0123456789 }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
upstreams:
${lines.join('\n')}
  reload: { resolve: { every: 1h }, ${reload} }
routes:
${routes.join('\n')}
`,
    )
  }

  async function get(
    name: string,
  ): Promise<{ status: number; address: string | undefined; host: string | undefined }> {
    const { status, body } = await call(gateway.url, 'GET', `/${name}`)
    return { status, address: body.address as string | undefined, host: body.host as string | undefined }
  }
  /** Sends twelve requests and counts the responses by address. */
  async function answering(name: string): Promise<Record<string, number>> {
    const counted: Record<string, number> = {}
    for (let turn = 0; turn < 12; turn += 1) {
      const { status, address } = await get(name)
      const who = address ?? String(status)
      counted[who] = (counted[who] ?? 0) + 1
    }
    return counted
  }
  const target = (name: string) => `http://${name}.test:${port}`
  const labelled = (name: string, address: string) => `${target(name)} (${address})`
  /** Counts the log lines that contain `sentence` and the target of the upstream `name`. */
  const logged = (name: string, sentence: string) =>
    gateway.lines.filter(line => line.includes(sentence) && line.includes(target(name))).length

  it('gets the same number of requests at each address; Host and SNI contain the name, and the certificate must match the name', async () => {
    expect(await answering('even')).toEqual({ [first]: 4, [second]: 4, [third]: 4 })
    expect((await get('even')).host).toBe(`even.test:${port}`)
    const { body } = await call(gateway.admin, 'GET', '/admin/v1/routes', {
      headers: { authorization: 'Bearer a-token-for-operators-0123456789' },
    })
    expect(JSON.stringify(body)).toContain(labelled('even', second))
    expect((await get('courses')).status).toBe(200)
    expect((await get('other')).status).toBe(502)
    expect(greeted).toEqual(['courses.internal'])
  })

  it('gets requests at no more than resolve.most addresses, and is logged once if its name has more addresses', async () => {
    expect(await answering('few')).toEqual({ [first]: 6, [second]: 6 })
    // During this wait, the gateway looks up the name two more times and finds the same addresses.
    await new Promise(resolve => setTimeout(resolve, 2_300))
    expect(logged('few', '"addresses":3,"msg":"target name has more addresses than resolve.most"')).toBe(1)
  })

  it('follows changed addresses without interrupting requests, and closes connections to old addresses', async () => {
    expect(await answering('follows')).toEqual({ [first]: 12 })
    await names.setAddresses('follows.test', [first, second])
    await expect.poll(() => answering('follows'), soon).toEqual({ [first]: 6, [second]: 6 })
    const answers = await Promise.all([1, 2, 3, 4].map(() => fetch(`${gateway.url}/follows?begin`)))
    await expect.poll(() => begun.length, soon).toBe(4)
    const bodies = answers.map(answer => answer.json())
    const end = (those: typeof begun) => {
      for (const { response } of those) response.end(' }')
    }
    const [one, ...others] = begun.filter(({ address }) => address === first)
    end(begun.filter(each => each === one || each.address === second))
    const open = () =>
      [...connections].filter(
        ([socket, to]) => !socket.destroyed && to.address === first && to.host?.startsWith('follows.'),
      ).length
    expect([others.length, open()]).toEqual([1, 2])
    await names.setAddresses('follows.test', [third])
    await expect.poll(() => answering('follows'), soon).toEqual({ [third]: 12 })
    await expect.poll(open, soon).toBe(1)
    end(others)
    const ended = performance.now()
    expect(await Promise.all(bodies)).toEqual(Array(4).fill({ begun: true }))
    await expect.poll(open, soon).toBe(0)
    expect(performance.now() - ended).toBeLessThan(1_000)
  })

  it('keeps its addresses while the name server is silent or does not know the name', async () => {
    names.pause()
    await expect.poll(() => logged('silent', 'target name not resolved'), soon).toBe(1)
    expect(await answering('silent')).toEqual({ [first]: 12 })
    names.resume()
    await expect.poll(() => logged('silent', 'target name resolved again'), soon).toBe(1)
    await names.setAddresses('silent.test', [])
    await expect.poll(() => logged('silent', 'target name not resolved'), soon).toBe(2)
    expect(await answering('silent')).toEqual({ [first]: 12 })
  })

  it('gets no requests until its name resolves for the first time; until then, clients get 503', async () => {
    expect(await get('late')).toMatchObject({ status: 503 })
    await names.setAddresses('late.test', [second])
    await expect.poll(() => get('late'), soon).toMatchObject({ status: 200, address: second })
  })

  it('gets requests at a new address only after a successful health check, or at once if all addresses are new', async () => {
    expect(await answering('health')).toEqual({ [first]: 12 })
    sick.add(second)
    await names.setAddresses('health.test', [first, second])
    const page = async () => (await fetch(`${gateway.admin}/metrics`)).text()
    const healthy = (address: string) =>
      `peage_upstream_healthy{upstream="health",target="${labelled('health', address)}"} `
    await expect.poll(page, soon).toContain(`${healthy(second)}0`)
    expect(await answering('health')).toEqual({ [first]: 12 })
    sick.clear()
    await expect.poll(() => answering('health'), soon).toEqual({ [first]: 6, [second]: 6 })
    // All addresses change at once, so no checked address is left. Requests therefore use the new address before its
    // first health check.
    await names.setAddresses('health.test', [third])
    const statuses = new Set<number>()
    await expect
      .poll(async () => {
        const { status, address } = await get('health')
        statuses.add(status)
        return address
      }, soon)
      .toBe(third)
    expect(statuses).toEqual(new Set([200]))
    expect(await page()).not.toContain(labelled('health', first))
  })

  it('gets no connection if its name resolves to the cloud metadata address or 0.0.0.0', async () => {
    expect(await get('meta')).toMatchObject({ status: 503 })
    expect(await get('rawmeta')).toMatchObject({ status: 502 })
  })

  it('with `resolve: false`, is a single target, and the gateway looks up its name for each new connection', async () => {
    expect(await answering('once')).toEqual({ [first]: 12 })
    await names.setAddresses('once.test', [second])
    // The open connection is still used, so there is no new lookup.
    expect(await answering('once')).toEqual({ [first]: 12 })
  })

  it('keeps its addresses after a reload that changes weights and timeouts', async () => {
    names.pause()
    await configure(`targets: [{ url: '${target('reload')}', weight: 1 }], timeouts: { response: 5s }`)
    gateway.child.kill('SIGHUP')
    await expect
      .poll(() => gateway.lines.some(line => line.includes('configuration reloaded')), soon)
      .toBe(true)
    expect(await answering('reload')).toEqual({ [first]: 12 })
  })
})
