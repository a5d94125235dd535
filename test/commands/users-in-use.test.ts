// Tests `peage users` while a gateway has locked the embedded database: the errors, and which listener and token the
// command uses.
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../support/upstream.ts'
import { type Gateway, gatewayPlace, startOn, token } from './users-doors.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

describe('peage users on the folder of a running gateway', () => {
  const { cwd, gateway } = gatewayPlace()
  const users = (...words: string[]) => peage(cwd, ['users', ...words])
  const port = () => new URL(String(gateway().server.adminAddress)).port

  const inUse = `error: the data folder ${join(cwd, 'data')} is in use by process ${process.pid}.`

  it.each(['0.0.0.0', '[::ffff:127.0.0.1]', 'localhost'])(
    'reaches the gateway through an admin listener on %s',
    async host => {
      const file = writeConfiguration(cwd, {
        name: 'host.yaml',
        admin: `admin: { listen: '${host}:${port()}', tokens: { none: '', ops: ${token} } }`,
      })
      expect(await users('list', '-c', file)).toMatchObject({ exit: 0 })
    },
  )

  describe('with token roles', () => {
    const names = ['reader', 'helper', 'boss']
    const [read, support, all] = names.map(name => `a-token-for-the-${name}-0123456789`) as [
      string,
      string,
      string,
    ]
    let roles: Gateway
    const place = folder()
    const users = (...words: string[]) => peage(place, ['users', ...words])
    const writeTokens = (tokens: string) => {
      const { host } = new URL(String(roles.server.adminAddress))
      writeConfiguration(place, { admin: `admin: { listen: '${host}', tokens: { ${tokens} } }` })
    }
    const tokens = `reader: { token: ${read}, may: read }, helper: { token: ${support}, may: support }`

    beforeAll(async () => {
      roles = await startOn(place, `admin: { listen: '127.0.0.1:0', tokens: { ${tokens}, boss: ${all} } }`)
      await roles.backing.database.query(
        "insert into users (email, password_hash) values ('a@example.com', 'x')",
      )
    })
    afterAll(() => roles?.server.stop())

    it('uses the first token in the file that is allowed to run the command', async () => {
      writeTokens(`${tokens}, boss: ${all}`)
      for (const words of [
        ['show', '1'],
        ['export', '1'],
        ['reset-usage', '1'],
        ['set-plan', '1', 'pro'],
      ])
        expect(await users(...words)).toMatchObject({ exit: 0 })
      expect(
        await roles.backing.database.query('select operator, method, route from admin_audit order by id'),
      ).toEqual([
        { operator: 'helper', method: 'GET', route: '/admin/v1/users/:id/export' },
        { operator: 'helper', method: 'POST', route: '/admin/v1/users/:id/reset-usage' },
        { operator: 'boss', method: 'PATCH', route: '/admin/v1/users/:id' },
      ])
    })

    it('reports that no token in the file is allowed to run the command', async () => {
      writeTokens(tokens)
      const { exit, stderr } = await users('set-plan', '1', 'free')
      expect(exit).toBe(1)
      expect(stderr).toContain(
        'The command cannot use the admin API of that process, because no token in gateway.yaml allows changeUser. Stop',
      )
    })
  })

  describe('without a usable admin listener', () => {
    let other: Server | undefined
    afterEach(() => {
      other?.closeAllConnections()
      other?.close()
      other = undefined
    })

    const remedy =
      '. Stop the process that uses the folder. Or restart that process with an admin listener and an admin token, and put the same token into other.yaml.\n'

    async function said(admin: string): Promise<string> {
      const file = writeConfiguration(cwd, { name: 'other.yaml', admin })
      const { exit, stdout, stderr } = await users('list', '-c', file)
      expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
      expect(stderr.startsWith(inUse)).toBe(true)
      expect(stderr.endsWith(remedy)).toBe(true)
      return stderr.slice(inUse.length + 1, -remedy.length)
    }

    it('reports what is missing in the file: the admin section, the token, or the port', async () => {
      expect(await said('')).toBe(
        'The command cannot use the admin API of that process, because other.yaml has no admin section',
      )
      expect(await said(`admin: { listen: '127.0.0.1:1' }`)).toBe(
        'The command cannot use the admin API of that process, because other.yaml has no admin.token',
      )
      expect(await said(`admin: { listen: '127.0.0.1:1', token: "\${PEAGE_ADMIN_TOKEN:-}" }`)).toBe(
        'The command cannot use the admin API of that process, because admin.token in other.yaml is empty (set the variable PEAGE_ADMIN_TOKEN to the same value as for the gateway)',
      )
      expect(await said(`admin: { listen: '127.0.0.1:0', token: ${token} }`)).toBe(
        'The command cannot use the admin API of that process, because admin.listen in other.yaml has port 0, so its port is not known',
      )
    })

    it('reports that no program listens at the address', async () => {
      expect(await said(`admin: { listen: '127.0.0.1:1', token: ${token} }`)).toBe(
        'The gateway does not respond at http://127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1)',
      )
    })

    it('tries the IPv6 loopback address if admin.listen is [::]', async () => {
      expect(await said(`admin: { listen: '[::]:1', token: ${token} }`)).toMatch(
        /^The gateway does not respond at http:\/\/\[::1\]:1 \(/,
      )
    })

    it('reports that the gateway rejects the token of the file', async () => {
      const address = gateway().server.adminAddress
      expect(await said(`admin: { listen: '127.0.0.1:${port()}', token: another-${token} }`)).toBe(
        `The gateway at ${address} rejected the admin token of other.yaml`,
      )
    })

    it.each([
      ['a page', 200, 'hello'],
      ['JSON that the admin API does not send', 200, '{"hello":"world"}'],
      ['an error', 404, '{"error":"not found"}'],
    ])(
      'reports that another program listens at the address if the response is %s',
      async (_what, status, body) => {
        other = createServer((_request, response) => response.writeHead(status).end(body))
        const address = await listen(other)
        expect(await said(`admin: { listen: '${new URL(address).host}', token: ${token} }`)).toBe(
          `Another program listens at ${address}, which is admin.listen in other.yaml`,
        )
      },
    )
  })
})

describe('peage users on the folder of a gateway without a token', () => {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0' }`)
  })
  afterAll(() => gateway?.server.stop())

  it('reports that the gateway has no admin token', async () => {
    const address = String(gateway.server.adminAddress)
    writeConfiguration(cwd, { admin: `admin: { listen: '${new URL(address).host}', token: ${token} }` })
    const { exit, stderr } = await peage(cwd, ['users', 'list'])
    expect(exit).toBe(1)
    expect(stderr).toContain(`The gateway at ${address} was started without an admin token. Stop the process`)
  })
})

describe('peage users on the folder of a gateway whose database fails', () => {
  const { users, inside, gateway } = gatewayPlace()

  it('reports the status and the error code of the response', async () => {
    await inside(database => database.query('alter table users rename to gone'))
    const address = String(gateway().server.adminAddress)
    expect(await users(['list'])).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the admin listener at ${address} responded with 503 (service_unavailable)\n`,
    })
  })
})
