// A target's name is all of its addresses, asked of a real name server: which of them get requests, and when.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest'
import { call } from '../support/client.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { type Program, startProgram } from '../support/program.ts'
import { describeWithNameServer } from '../support/services.ts'

const addresses = ['127.0.11.1', '127.0.11.2', '127.0.11.3'] as const
const [first, second, third] = addresses
const soon = { timeout: 15_000, interval: 20 }

describeWithNameServer('a target whose host is a name', () => {
  let names: NameServer
  let folder: string
  let servers: Server[]
  let port: number
  let gateway: Program
  /** Those whose health check fails. */
  const sick = new Set<string>()

  beforeAll(async () => {
    names = await startNameServer(inject('nameServerBin'))
    folder = await mkdtemp(join(tmpdir(), 'peage-names-test-'))
    servers = []
    port = 0
    for (const address of addresses) {
      const server = createServer((request, response) => {
        if (request.url === '/health' && sick.has(address)) response.statusCode = 500
        response.end(JSON.stringify({ address, host: request.headers.host }))
      })
      await new Promise<void>(resolve => server.listen(port, address, resolve))
      port = (server.address() as AddressInfo).port
      servers.push(server)
    }
  })
  afterEach(async () => {
    gateway?.child.kill('SIGTERM')
    await gateway?.ended
    sick.clear()
    names.resume()
  })
  afterAll(async () => {
    for (const server of servers) server.closeAllConnections()
    await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
    await names.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const file = () => join(folder, 'gateway.yaml')

  async function start(upstream: string): Promise<void> {
    await writeFile(
      file(),
      `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0', token: a-token-for-operators-0123456789 }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
upstreams: { app: { ${upstream} } }
routes: [{ path: /app, upstream: app, auth: none }]
`,
    )
    gateway = await startProgram(file(), {}, false, names.command)
  }

  async function get(): Promise<{ status: number; address: string | undefined; host: string | undefined }> {
    const { status, body } = await call(gateway.url, 'GET', '/app')
    return { status, address: body.address as string | undefined, host: body.host as string | undefined }
  }
  /** Who answers ten requests. */
  async function answering(): Promise<Record<string, number>> {
    const counted: Record<string, number> = {}
    for (let turn = 0; turn < 12; turn += 1) {
      const { status, address } = await get()
      const who = address ?? String(status)
      counted[who] = (counted[who] ?? 0) + 1
    }
    return counted
  }
  const target = () => `http://app.test:${port}`
  const name = (address: string) => `${target()} (${address})`

  it('sends requests evenly to all of its addresses, under its name', async () => {
    await names.setAddresses('app.test', [first, second, third])
    await start(`targets: ['${target()}']`)
    expect(await answering()).toEqual({ [first]: 4, [second]: 4, [third]: 4 })
    expect((await get()).host).toBe(`app.test:${port}`)
    const { body } = await call(gateway.admin, 'GET', '/admin/v1/routes', {
      headers: { authorization: 'Bearer a-token-for-operators-0123456789' },
    })
    expect(JSON.stringify(body)).toContain(name(second))
  })

  it('follows its addresses as they come and go', async () => {
    await names.setAddresses('app.test', [first])
    await start(`targets: ['${target()}'], resolve: { every: 1s }`)
    expect(await answering()).toEqual({ [first]: 12 })
    await names.setAddresses('app.test', [first, second])
    await expect.poll(answering, soon).toEqual({ [first]: 6, [second]: 6 })
    await names.setAddresses('app.test', [third])
    await expect.poll(answering, soon).toEqual({ [third]: 12 })
  })

  it('keeps its addresses while the name server is silent, and while it knows no such name', async () => {
    await names.setAddresses('app.test', [first])
    await start(`targets: ['${target()}'], resolve: { every: 1s }`)
    names.pause()
    const logged = (sentence: string) => gateway.lines.filter(line => line.includes(sentence)).length
    await expect.poll(() => logged('name of a target not found'), soon).toBe(1)
    expect(await answering()).toEqual({ [first]: 12 })
    names.resume()
    await expect.poll(() => logged('name of a target found again'), soon).toBe(1)
    await names.setAddresses('app.test', [])
    await expect.poll(() => logged('name of a target not found'), soon).toBe(2)
    expect(await answering()).toEqual({ [first]: 12 })
  })

  it('that never resolved is 503, and serves at its first address', async () => {
    await names.setAddresses('app.test', [])
    await start(`targets: ['${target()}'], resolve: { every: 1s }`)
    expect(await get()).toMatchObject({ status: 503 })
    await names.setAddresses('app.test', [second])
    await expect.poll(get, soon).toMatchObject({ status: 200, address: second })
  })

  it('under health, sends to a new address once its first check was good, and none is refused meanwhile', async () => {
    await names.setAddresses('app.test', [first])
    await start(
      `targets: ['${target()}'], resolve: { every: 1s }, health: { path: /health, interval: 200ms }`,
    )
    sick.add(second)
    await names.setAddresses('app.test', [first, second])
    const page = async () => (await fetch(`${gateway.admin}/metrics`)).text()
    const healthy = (address: string) => `peage_upstream_healthy{upstream="app",target="${name(address)}"} `
    await expect.poll(page, soon).toContain(`${healthy(second)}0`)
    expect(await answering()).toEqual({ [first]: 12 })
    sick.clear()
    await expect.poll(answering, soon).toEqual({ [first]: 6, [second]: 6 })
    // All at once: before its first check where there is no other.
    await names.setAddresses('app.test', [third])
    const statuses = new Set<number>()
    await expect
      .poll(async () => {
        const { status, address } = await get()
        statuses.add(status)
        return address
      }, soon)
      .toBe(third)
    expect(statuses).toEqual(new Set([200]))
    expect(await page()).not.toContain(name(first))
  })

  it('never leads to an address that a name may not name', async () => {
    await names.setAddresses('app.test', ['169.254.169.254', '0.0.0.0'])
    await start(`targets: ['${target()}'], resolve: { every: 1s }`)
    expect(await get()).toMatchObject({ status: 503 })
    gateway.child.kill('SIGTERM')
    await gateway.ended
    await start(`targets: ['${target()}'], resolve: false`)
    expect(await get()).toMatchObject({ status: 502 })
  })

  it('is one target, looked up at each connect, with resolve: false', async () => {
    await names.setAddresses('app.test', [first])
    await start(`targets: ['${target()}'], resolve: false`)
    expect(await answering()).toEqual({ [first]: 12 })
    await names.setAddresses('app.test', [second])
    // The connection that is open goes on.
    expect(await answering()).toEqual({ [first]: 12 })
  })

  it('keeps its addresses over a reload that changes weights and timeouts', async () => {
    await names.setAddresses('app.test', [first])
    await start(`targets: ['${target()}'], resolve: { every: 1h }`)
    names.pause()
    const text = await readFile(file(), 'utf8')
    await writeFile(
      file(),
      text.replace(`['${target()}']`, `[{ url: '${target()}', weight: 1 }], timeouts: { response: 5s }`),
    )
    gateway.child.kill('SIGHUP')
    await expect.poll(() => gateway.lines.some(line => line.includes('is reloaded')), soon).toBe(true)
    expect(await answering()).toEqual({ [first]: 12 })
  })
})
