// The real program delivers alerts, and sends pending deliveries after a restart.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { first } from '../support/certificates.ts'
import { call, login } from '../support/client.ts'
import { makeDatabase } from '../support/embedded.ts'
import type { Stores } from '../support/gateway.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { poolSize } from '../support/services.ts'
import { describeOverSetups } from '../support/setups.ts'

const adminToken = 'a-token-for-operators-0123456789'
const password = 'correct horse battery'

interface Seen {
  headers: IncomingHttpHeaders
  body: string
}

describeOverSetups('the program', setup => {
  let stores: Stores
  let folder: string
  let file: string
  let program: Program
  const seen: Seen[] = []
  const receivers: Receiver[] = []
  beforeAll(async () => {
    stores = await setup.open()
    folder = await mkdtemp(join(tmpdir(), 'peage-deliveries-'))
    const data = join(folder, 'data')
    if (stores.postgres === '') await makeDatabase(data)
    file = join(folder, 'gateway.yaml')
    await writeFile(
      file,
      `server: { listen: '127.0.0.1:0', drain_timeout: 2s, log: { requests: false } }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', data_dir: ${JSON.stringify(data)}, pool: ${poolSize} }
webhooks: { allow_private_networks: true, timeout: 8s }
`,
    )
    program = await start()
  })
  beforeEach(() => {
    seen.length = 0
  })
  afterAll(async () => {
    program?.child.kill('SIGTERM')
    await program?.ended
    for (const each of receivers) await each.close()
    await setup.drop(stores)
    await rm(folder, { recursive: true, force: true })
  })

  /** Starts a program that trusts the certificate of the receivers. */
  const start = () => startProgram(file, { NODE_EXTRA_CA_CERTS: first.files.cert })
  const admin = (method: string, path: string, body?: unknown) =>
    call(program.admin, method, `/admin/v1${path}`, { token: adminToken, body })
  const emit = (userId: number, data: unknown = {}) =>
    admin('POST', '/alerts', { type: 'course.done', data, user_id: userId })

  /** Starts a receiver of webhooks. @param answers whether the receiver responds to requests */
  async function receiver(answers = true): Promise<Receiver> {
    const made = await startReceiver(
      first,
      async (request, response) => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk as Buffer)
        seen.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
        if (answers) response.writeHead(200).end()
      },
      '127.0.0.1',
    )
    receivers.push(made)
    return made
  }

  let made = 0
  async function proUser(port: number) {
    made += 1
    const email = `delivery${made}@example.com`
    const { body } = await call(program.url, 'POST', '/api/v1/auth/register', { body: { email, password } })
    const id = Number(body.user_id)
    await admin('PATCH', `/users/${id}`, { plan: 'pro' })
    const { access: token } = await login(program.url, email, password)
    const url = `https://127.0.0.1:${port}/hook`
    const hook = await call(program.url, 'POST', '/api/v1/user/webhook', { token, body: { url } })
    return { id, secret: String(hook.body.secret) }
  }
  const delivered = async (id: number) =>
    (await admin('GET', `/deliveries?user_id=${id}`)).body.deliveries as Record<string, unknown>[]

  it('signs a delivery with the secret that the user received, and lists it as delivered', async () => {
    const { id, secret } = await proUser((await receiver()).port)
    const answer = await emit(id, { title: 'Émigré' })
    expect([answer.status, answer.body]).toEqual([202, { deliveries: 1 }])
    await expect.poll(() => seen.length, { timeout: 5_000 }).toBe(1)
    const { headers, body } = seen[0] as Seen
    const payload = new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(payload).toEqual({
      type: 'course.done',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data: { title: 'Émigré' },
    })
    await expect
      .poll(() => delivered(id))
      .toMatchObject([
        { status: 'delivered', attempts: 1, response_status: 200, webhook_id: headers['webhook-id'] },
      ])
  })

  it('after a restart, sends the deliveries that were interrupted or not yet started', async () => {
    const hanging = await receiver(false)
    const { id } = await proUser(hanging.port)
    for (let i = 0; i < 6; i += 1) await emit(id, i)
    const idsSeen = () => {
      const ids = seen.map(({ headers }) => String(headers['webhook-id']))
      return new Set(ids.filter(each => each.endsWith(`_${id}`)))
    }
    await expect.poll(() => idsSeen().size).toBe(4)
    const cut = idsSeen()
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    await expect.poll(() => hanging.open).toBe(0)

    seen.length = 0
    hanging.server.on('request', (_, response) => response.end())
    program = await start()
    await expect
      .poll(async () => (await delivered(id)).map(({ status, attempts }) => [status, attempts]), {
        timeout: 10_000,
      })
      .toEqual(Array(6).fill(['delivered', 1]))
    expect(idsSeen().size).toBe(6)
    for (const each of cut) expect(idsSeen()).toContain(each)
  })
})
