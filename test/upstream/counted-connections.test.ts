// Tests which requests count as uses if the gateway may open only one connection to the upstream.
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { call, newUser, type TestUser } from '../support/client.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { waitingForLocks } from '../support/locks.ts'
import { describeWithServices } from '../support/services.ts'
import { type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts'

describeWithServices('counted uses with only one connection to the upstream', () => {
  let postgres: string
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  /** A separate connection to the database of the gateway. Tests use it to hold locks. */
  let program: Client

  beforeAll(async () => {
    postgres = await createPostgresDatabase()
    upstream = await startScriptedUpstream()
    gateway = await startGateway(
      `upstreams:
  narrow: { targets: ['${upstream.url}'], connections: 1, timeouts: { connect: 200ms, response: 5s } }
routes:
  - { name: open, path: /open, upstream: narrow, auth: none }
  - { name: named, path: /named, upstream: narrow }
  - { name: counted, path: /counted, upstream: narrow, free_daily: true }
  - { name: counted-briefly, path: /counted-briefly, upstream: narrow, free_daily: true, timeout: 400ms }
`,
      { postgres, redis: '' },
    )
    program = new Client({ connectionString: postgres })
    await program.connect()
  })
  afterEach(() => {
    upstream.heads = 0
  })
  afterAll(async () => {
    await program?.end()
    await gateway?.stop()
    await upstream?.close()
    await dropPostgresDatabase(postgres)
  })

  const usage = async () => {
    const [row] = await gateway.sql<{ sum: number }>('select sum(daily_usage)::int as sum from users')
    return row?.sum
  }
  const use = async ({ access }: TestUser, path = '/counted') => {
    const { status, headers } = await call(gateway.url, 'GET', path, { token: access })
    return [status, headers.get('x-peage-error')]
  }
  /**
   * Makes the upstream delay its responses.
   * @returns a function that makes the upstream send the delayed responses
   */
  const silence = () => {
    const waiting: (() => void)[] = []
    let isSilent = true
    upstream.script = socket => {
      const answer = () => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      if (isSilent) waiting.push(answer)
      else answer()
    }
    return () => {
      isSilent = false
      for (const answer of waiting) answer()
    }
  }

  it('if 12 requests arrive at once, each counted request gets a 200, and each other request gets a 503', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => newUser(gateway)))
    const before = (await usage()) ?? 0
    const speak = silence()
    const uses = Promise.all(users.map(user => use(user)))
    setTimeout(speak, 600)
    const answers = await uses
    const answered = answers.filter(([status]) => status === 200)
    expect(answers.filter(([, code]) => code === 'upstream_unavailable')).toHaveLength(12 - answered.length)
    expect(await usage()).toBe(before + answered.length)
  })

  /**
   * Sends a request that counts as a use. While this use is being counted, another request gets the only connection.
   */
  async function overtaken(path: string): Promise<{ answer: Promise<unknown>; speak: () => void }> {
    const user = await newUser(gateway)
    const speak = silence()
    await program.query('begin')
    await program.query('select from users where id = $1 for update', [user.id])
    const answer = use(user, path)
    await waitingForLocks(gateway.backing.database)
    const other = new RawConnection(gateway.url)
    other.write(requestBytes('GET', '/open'))
    await expect.poll(() => upstream.heads).toBe(1)
    await program.query('commit')
    return {
      answer,
      speak: () => {
        speak()
        other.close()
      },
    }
  }

  it('if another request takes the connection while a request is being counted, the counted request waits for the connection again', async () => {
    const { answer, speak } = await overtaken('/counted')
    setTimeout(speak, 500)
    expect(await answer).toEqual([200, null])
  })

  it('a counted request that waits too long for the connection gets a 504 and stays counted', async () => {
    const { answer, speak } = await overtaken('/counted-briefly')
    expect(await answer).toEqual([504, 'upstream_timeout'])
    speak()
  })

  it('if the client leaves during the user lookup, its request does not wait for the connection', async () => {
    const { access } = await newUser(gateway)
    const speak = silence()
    const other = new RawConnection(gateway.url)
    other.write(requestBytes('GET', '/open'))
    await expect.poll(() => upstream.heads).toBe(1)
    await program.query('begin')
    await program.query('lock table users')
    const client = new RawConnection(gateway.url)
    client.write(requestBytes('GET', '/named', [`Authorization: Bearer ${access}`]))
    await waitingForLocks(gateway.backing.database)
    client.close()
    // When this request gets its response, the gateway has already noticed that `client` closed its connection.
    await call(gateway.url, 'GET', '/unknown')
    await program.query('commit')
    const logged = () => gateway.log.map(line => JSON.parse(line)).find(({ route }) => route === 'named')
    await expect.poll(logged, { timeout: 1_000 }).toMatchObject({ decision: 'client_gone' })
    speak()
    other.close()
  })
})
