// Max-Forwards (RFC 9110 §7.6.2): the client limits how many servers may forward its OPTIONS or TRACE request.
import { beforeAll, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { ask, type RawAnswer, RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const everyMethod = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

describe('Max-Forwards', () => {
  let user: TestUser
  const at = journey(
    embeddedSetup,
    {},
    upstream => `upstreams:
  app: { targets: ['${upstream}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: some, path: /some, upstream: app, auth: none, methods: [GET, OPTIONS, TRACE] }
  - { name: private, path: /private, upstream: app }
  - { name: counted, path: /counted, upstream: app, free_daily: true }
  - { name: cors, path: /cors, upstream: app, auth: none, cors: { origins: ['https://a.example'] } }
`,
  )
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })

  async function send(method: string, path: string, lines: string[], body = ''): Promise<RawAnswer> {
    const answer = await ask(at.gateway.url, requestBytes(method, path, lines, body), method)
    if (answer === undefined) throw new Error('no answer')
    return answer
  }

  /** The values of Max-Forwards that the upstream received. */
  const received = () =>
    at.upstream.received.flatMap(({ rawHeaders }) =>
      rawHeaders.filter((_, i) => i % 2 === 1 && /^max-forwards$/i.test(rawHeaders[i - 1] as string)),
    )

  it.each(['0', '00'])(
    'with the value %s in an OPTIONS request makes the gateway itself respond with the methods of the route',
    async limit => {
      const answer = await send('OPTIONS', '/public/x', [`Max-Forwards: ${limit}`])
      expect([answer.status, value(answer, 'allow')]).toEqual([204, everyMethod])
      expect([value(answer, 'cache-control'), value(answer, 'content-length')]).toEqual([
        'no-store',
        undefined,
      ])
      const limited = await send('OPTIONS', '/some', [`max-forwards: ${limit}`])
      expect([limited.status, value(limited, 'allow')]).toEqual([204, 'GET, OPTIONS, HEAD'])
      expect(at.upstream.received).toEqual([])
    },
  )

  it('with the value 0 in a TRACE request makes the gateway send a refusal that does not repeat the request', async () => {
    const answer = await send('TRACE', '/some', ['Max-Forwards: 0', 'Cookie: session=secret'])
    expectRefusal(answer, 'method_not_allowed')
    expect(value(answer, 'allow')).toBe('GET, OPTIONS, HEAD')
    expect(JSON.stringify(answer) + answer.body).not.toContain('secret')
    expect(at.upstream.received).toEqual([])
  })

  it.each([
    ['OPTIONS', '5', '4'],
    ['OPTIONS', '1', '0'],
    ['TRACE', '010', '9'],
    ['OPTIONS', '9'.repeat(30), String(Number.MAX_SAFE_INTEGER)],
    ['OPTIONS', '-1', '-1'],
    ['OPTIONS', 'many', 'many'],
    ['OPTIONS', '1.5', '1.5'],
    ['GET', '0', '0'],
    ['GET', '5', '5'],
    ['POST', '0', '0'],
  ])('in a %s request with the value %s is sent to the upstream as %s', async (method, limit, next) => {
    const length = method === 'POST' ? ['Content-Length: 0'] : []
    expect((await send(method, '/public/x', [`Max-Forwards: ${limit}`, ...length])).status).toBe(200)
    expect(received()).toEqual([next])
  })

  it('counts as 0 if it has several values and one of them is 0', async () => {
    expect((await send('OPTIONS', '/public/x', ['Max-Forwards: 5', 'Max-Forwards: 0'])).status).toBe(204)
    expect(at.upstream.received).toEqual([])
  })

  it('with the value 0 does not bypass the guards of the route, and the request does not count as a daily use', async () => {
    expectRefusal(await send('OPTIONS', '/private', ['Max-Forwards: 0']), 'token_invalid')
    const bearer = `Authorization: Bearer ${user.access}`
    for (let i = 0; i < 2; i += 1) {
      expect((await send('OPTIONS', '/counted', ['Max-Forwards: 0', bearer])).status).toBe(204)
    }
    expect((await send('GET', '/counted', [bearer])).status).toBe(200)
    expectRefusal(await send('GET', '/counted', [bearer]), 'daily_limit_reached')
  })

  it('with the value 0 leads to a response with the CORS headers of the route', async () => {
    const answer = await send('OPTIONS', '/cors', ['Max-Forwards: 0', 'Origin: https://a.example'])
    expect([answer.status, value(answer, 'access-control-allow-origin')]).toEqual([204, 'https://a.example'])
  })

  it('with the value 0 leaves the connection usable, even if the OPTIONS request has a body', async () => {
    const connection = new RawConnection(at.gateway.url)
    const lines = ['Max-Forwards: 0', 'Content-Length: 5']
    connection.write(requestBytes('OPTIONS', '/public/x', lines, 'five!'))
    expect((await connection.answer('OPTIONS'))?.status).toBe(204)
    connection.write(requestBytes('GET', '/public/y'))
    expect((await connection.answer())?.status).toBe(200)
    connection.close()
    expect(at.upstream.received.map(({ url }) => url)).toEqual(['/public/y'])
  })
})
