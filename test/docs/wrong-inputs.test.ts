// Sends every input in the table of wrong inputs (docs/errors.md) to a running gateway, and checks the response.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authOperations } from '../../src/endpoints/auth.ts'
import { keyOperations } from '../../src/endpoints/keys.ts'
import { upgradeOperations } from '../../src/endpoints/upgrade.ts'
import { userOperations } from '../../src/endpoints/user.ts'
import type { Operation } from '../../src/openapi/operation.ts'
import { catalog, type RefusalCode } from '../../src/refusals/catalog.ts'
import { ask, requestBytes, value } from '../security/raw-client.ts'
import { call, login, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { linesOf, rowsUnder } from './read-tables.ts'

const operations = [authOperations, keyOperations, userOperations, upgradeOperations].flatMap(each =>
  Object.values<Operation>(each),
)

interface Row {
  method: string
  path: string
  /** The text in the cell: either a literal body, or a description that is a key of `words`. */
  input: string
  status: number
  code: RefusalCode | undefined
}

interface Sent {
  lines?: string[]
  body?: string | Buffer
}

const page = 'errors.md'

/** Maps each group name that the page defines to the requests or inputs in this group. */
const names = new Map(
  linesOf(page).flatMap(line => {
    const [, name = '', meaning = ''] = /^- \*\*(.+)\*\*: (.*)$/.exec(line) ?? []
    return name === '' ? [] : [[name, meaning.split('; ')] as const]
  }),
)

/** Splits a cell at its semicolons, and replaces each group name with the members of the group. */
function listOf(cell: string): readonly string[] {
  return cell.split('; ').flatMap(item => names.get(item) ?? [item])
}

const rows = rowsUnder('## Wrong input', page).flatMap(
  ([requests = '', inputs = '', response = '']): Row[] => {
    const [, status, code] = /^(\d{3})(?: `(\w+)`|[:,].*)?$/.exec(response) ?? []
    return listOf(requests).flatMap(request => {
      const [, method = '', path = ''] = /^`(GET|POST|PUT|DELETE) (\S+)`$/.exec(request) ?? []
      if (method === '' || status === undefined) throw new Error(`not a row: ${request}, ${response}`)
      return listOf(inputs).map(input => ({
        method,
        path,
        input,
        status: Number(status),
        code: code as RefusalCode | undefined,
      }))
    })
  },
)

describe('the table of wrong inputs', () => {
  let gateway: TestGateway
  let pro: TestUser
  let free: TestUser
  let inactive: TestUser
  /** A user with as many API keys as the plan allows. */
  let full: TestUser
  let key: string
  let apiToken: string
  beforeAll(async () => {
    gateway = await startGateway(
      `subscription: { upgrade_url: 'https://pay.example.com/?u={user_id}&p={plan}' }
upstreams: { api: { targets: ['http://127.0.0.1:9'] } }
routes: [{ path: /data, upstream: api, scope: 'data:read' }]`,
    )
    pro = await newUser(gateway, 'pro')
    free = await newUser(gateway)
    inactive = await newUser(gateway, 'pro')
    await gateway.sql('update users set is_active = 0 where id = $1', [inactive.id])
    full = await newUser(gateway, 'pro')
    for (let made = 0; made < 5; made += 1) {
      const created = await call(gateway.url, 'POST', '/api/v1/auth/keys', {
        token: full.access,
        body: { name: 'CI' },
      })
      key = (created.body as { key: string }).key
    }
    const replaced = await call(gateway.url, 'POST', '/api/v1/user/api-token', { token: full.access })
    apiToken = (replaced.body as { api_token: string }).api_token
  })
  afterAll(() => gateway?.stop())

  const bearer = (token: string) => [`Authorization: Bearer ${token}`]
  /**
   * Changes a character of the signature. The last character stays the same, because base64url can ignore some bits of
   * the last character.
   */
  const changed = (token: string) =>
    `${token.slice(0, -10)}${token.at(-10) === 'A' ? 'B' : 'A'}${token.slice(-9)}`
  const refreshing = (token: string): Sent => ({ body: JSON.stringify({ refresh_token: token }) })
  async function spent(endpoint: string): Promise<string> {
    const { refresh } = await login(gateway.url, free.email, free.password)
    await call(gateway.url, 'POST', `/api/v1/auth/${endpoint}`, { body: { refresh_token: refresh } })
    return refresh
  }
  const account = (email: string, password: string): Sent => ({ body: JSON.stringify({ email, password }) })
  const password = 'correct horse battery'

  /**
   * Maps the description of an input in the table to a function that builds the request. For some inputs, `isAuth`
   * selects where the token is sent: in the body if it is true, otherwise in a header.
   */
  const words: Record<string, (isAuth: boolean) => Sent | Promise<Sent>> = {
    'no body': () => ({}),
    'bytes that are not UTF-8': () => ({ body: Buffer.from('{"email":"\xff@example.com"}', 'latin1') }),
    'a body over 64 KiB': () => ({ body: JSON.stringify({ email: 'x'.repeat(65_536) }) }),
    'an email of 255 characters': () => account(`${'x'.repeat(243)}@example.com`, password),
    'a password of 1,025 characters': () => account('new@example.com', 'x'.repeat(1_025)),
    'a registered email': () => account(free.email, password),
    'a registered email in capitals and with spaces around it': () =>
      account(` ${free.email.toUpperCase()}\n`, password),
    'a wrong password': () => account(free.email, 'wrong horse battery'),
    'the password with a space at the end': () => account(free.email, `${free.password} `),
    'an access token': () => refreshing(free.access),
    'a token of 5,000 characters': () => refreshing('x'.repeat(5_000)),
    'a token with one changed character': isAuth =>
      isAuth ? refreshing(changed(free.refresh)) : { lines: bearer(changed(pro.access)) },
    'a used token': async () => refreshing(await spent('refresh')),
    'a token that was logged out': async () => refreshing(await spent('logout')),
    'the token of an inactive user': isAuth =>
      isAuth ? refreshing(inactive.refresh) : { lines: bearer(inactive.access) },
    'the token of an ended session': async () => {
      const { access, refresh } = await login(gateway.url, pro.email, pro.password)
      await call(gateway.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: refresh } })
      return { lines: bearer(access) }
    },
    'a URL of 2,049 characters': () => ({
      body: JSON.stringify({ url: `https://example.com/${'x'.repeat(2_029)}` }),
    }),
    'no credential': () => ({ lines: [] }),
    'a refresh token as bearer': () => ({ lines: bearer(pro.refresh) }),
    'a valid API key of `POST /api/v1/auth/keys`': () => ({ lines: [`X-API-Key: ${key}`] }),
    'a valid API key of `POST /api/v1/user/api-token`': () => ({ lines: [`X-API-Key: ${apiToken}`] }),
    'a name of 65 characters': () => ({ body: JSON.stringify({ name: 'x'.repeat(65) }) }),
    'a user with as many keys as the plan allows': () => ({
      lines: bearer(full.access),
      body: JSON.stringify({ name: 'CI' }),
    }),
    'an unknown key': () => ({ lines: ['X-API-Key: peage_unknown'] }),
    'a user on plan free': () => ({ lines: bearer(free.access) }),
    'two Authorization headers': () => ({ lines: [...bearer(pro.access), ...bearer(pro.access)] }),
    'two X-API-Key headers': () => ({ lines: ['X-API-Key: a', 'X-API-Key: b'] }),
    'headers over 16 KiB': () => ({ lines: [`X-Long: ${'x'.repeat(16_384)}`] }),
    'two Content-Length headers': () => ({ lines: ['Content-Length: 2', 'Content-Length: 3'] }),
    'a Content-Length that is not a number': () => ({ lines: ['Content-Length: x'] }),
  }

  it.each(rows)(
    'is correct: $method $path responds with $status to $input',
    async ({ method, path, input, status, code }) => {
      const isAuth = path.startsWith('/api/v1/auth/') && !path.startsWith('/api/v1/auth/keys')
      const literal = /^`(.*)`$/.exec(input)?.[1]
      const named = words[input]
      if (literal === undefined && named === undefined) throw new Error(`unknown input "${input}"`)
      const sent = literal !== undefined ? { body: literal } : ((await named?.(isAuth)) ?? {})
      const signedIn = isAuth ? [] : bearer(path.endsWith('/upgrade') ? free.access : pro.access)
      const { lines = signedIn, body } = sent
      const bytes = Buffer.from((body ?? '') as string)
      const length =
        lines.some(line => line.startsWith('Content-Length')) || body === undefined
          ? []
          : [`Content-Length: ${bytes.length}`]
      const response = await ask(
        gateway.url,
        requestBytes(method, path, [...lines, ...length], bytes),
        method,
      )
      expect([response?.status, response && value(response, 'x-peage-error')]).toEqual([status, code])
      if (code !== undefined) {
        expect(catalog[code].status).toBe(status)
        expect(JSON.parse(String(response?.body)).error).toBe(catalog[code].fr)
      }
    },
  )

  it('contains a missing, an invalid, a mistyped and an oversized body for each endpoint that needs a body', () => {
    const missing = operations
      .filter(({ body }) => body !== undefined)
      .flatMap(({ method, path }) =>
        ['no body', '`{"email":`', '`[]`', '`7`', '`{}`', 'a body over 64 KiB']
          .filter(
            input => !rows.some(row => row.method === method && row.path === path && row.input === input),
          )
          .map(input => `${method} ${path} ${input}`),
      )
    expect(missing).toEqual([])
  })

  it('contains every refusal that the input of an endpoint can cause', () => {
    // The table need not contain these refusals, because they depend not only on the input, but also on the request
    // rate, the stores or the settings.
    const others = [
      'rate_limited',
      'key_check_failed',
      'service_unavailable',
      'internal',
      'payment_not_configured',
      'password_too_common',
    ]
    const missing = operations.flatMap(({ method, path, refusals }) =>
      Object.values(refusals)
        .flat()
        .filter(code => !others.includes(code))
        .filter(code => !rows.some(row => row.method === method && row.path === path && row.code === code))
        .map(code => `${method} ${path} ${code}`),
    )
    expect(missing).toEqual([])
  })
})
