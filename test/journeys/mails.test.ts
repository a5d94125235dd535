// A running gateway sends mails through a real SMTP server.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { describeOverSetups } from '../support/setups.ts'
import { type MailServer, startMailServer, startScriptedServer } from '../support/smtp.ts'

const section = (smtp: string, more = '') =>
  `mail: { smtp: "${smtp}", from: "Péage <no-reply@example.com>", rate_limits: { per_email: 0, per_address: 0 }${more} }\n`
const links = ', links: { reset: "https://app.example.com/reset#token={token}" }'

describeOverSetups('mails', setup => {
  let stores: Stores
  let server: MailServer
  let gateway: TestGateway
  const closing: (() => unknown)[] = []
  beforeAll(async () => {
    stores = await setup.open()
    server = await startMailServer()
    gateway = await startGateway(section(`smtp://localhost:${server.port}`, links), stores)
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })
  afterAll(async () => {
    await gateway.stop()
    await server.close()
    await setup.drop(stores)
  })

  const post = (path: string, body: unknown, { base = gateway.url, headers = {} } = {}) =>
    call(base, 'POST', `/api/v1/auth/${path}`, { body, headers })
  const admin = (path: string) =>
    call(gateway.admin, 'GET', path, { headers: { authorization: `Bearer ${gateway.adminToken}` } })

  /** Waits for the first mail to `email` whose subject matches `subject`. */
  function mailTo(email: string, subject: RegExp) {
    return vi.waitFor(
      () => {
        const found = server.mails.find(
          ({ to, parsed }) => to[0] === email && subject.test(String(parsed.subject)),
        )
        if (found === undefined) throw new Error(`no mail to ${email}`)
        return found
      },
      { timeout: 5_000 },
    )
  }

  async function codeOf(user: TestUser) {
    const { parsed } = await mailTo(user.email, /mot de passe - /)
    const text = String(parsed.text)
    return { text, code: /^\d{8}$/m.exec(text)?.[0], token: /#token=([\w-]+)$/m.exec(text)?.[1] }
  }

  it('contain a reset code and the configured link; a notice follows after the password is set', async () => {
    const user = await newUser(gateway)
    const forged = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    await post('password/forgot', { email: user.email }, { headers: forged })
    const { text, code, token } = await codeOf(user)
    expect(token).toMatch(/^[\w-]{43,}$/)
    expect(text.match(/https?:\/\/[^/]+/g)).toEqual(['https://app.example.com'])
    expect(
      (await post('password/reset', { email: user.email, code, new_password: 'another password' })).status,
    ).toBe(200)
    const { parsed } = await mailTo(user.email, /a été modifié - /)
    expect(parsed.subject).toBe('Votre mot de passe a été modifié - example.com')
    expect(parsed.text).toContain('Le mot de passe de votre compte example.com a été modifié.')

    const page = await admin(`/admin/v1/mails?user_id=${user.id}`)
    const sent = async () => {
      const { mails } = (await admin(`/admin/v1/mails?user_id=${user.id}&status=sent`)).body
      return (mails as { kind: string }[]).map(({ kind }) => kind)
    }
    await expect.poll(sent).toEqual(['password_changed', 'reset'])
    expect(Object.keys((page.body.mails as object[])[0] ?? {})).toEqual([
      'id',
      'user_id',
      'kind',
      'address',
      'status',
      'attempts',
      'created_at',
      'due_at',
      'sent_at',
    ])
    const metrics = await call(gateway.admin, 'GET', '/metrics')
    expect(metrics.text).toMatch(/peage_mails_total\{kind="reset",outcome="sent"\} [1-9]/)
    const rows = await gateway.sql('select * from mails where user_id = $1', [user.id])
    const told = [...gateway.log, metrics.text, page.text, JSON.stringify(rows)].join('\n')
    for (const secret of [code, token]) expect(told).not.toContain(secret)
  })

  it('are listed newest first, can be filtered by user and status, and are each on exactly one page', async () => {
    const user = await newUser(gateway)
    await gateway.sql(
      `insert into mails (user_id, kind, address, status, due_at, expires_at, created_at, finished_at)
       select $1, 'password_changed', $2, case when n % 2 = 0 then 'failed' else 'sent' end, now(), now(), now(), now()
         from generate_series(1, 230) as n`,
      [user.id, user.email],
    )
    const pagesOf = async (query: string) => {
      const pages: { id: number; status: string; due_at: unknown; sent_at: unknown }[][] = []
      for (let cursor = ''; ; ) {
        const { body } = await admin(`/admin/v1/mails?user_id=${user.id}${query}${cursor}`)
        pages.push(body.mails as (typeof pages)[0])
        if (body.next_cursor === null) return pages
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    const pages = await pagesOf('')
    const all = pages.flat()
    expect(pages.length).toBeGreaterThan(2)
    expect(new Set(all.map(({ id }) => id)).size).toBe(230)
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => b - a))
    for (const { status, due_at, sent_at } of all)
      expect([due_at, sent_at === null]).toEqual([null, status === 'failed'])
    expect((await pagesOf('&status=sent')).flat().map(({ status }) => status)).toEqual(
      Array(115).fill('sent'),
    )
    expect((await pagesOf('&status=pending')).flat()).toEqual([])
  })

  it('wait while the SMTP server is down and are sent later; clients and /readyz see no failure', async () => {
    const silent = await startScriptedServer(() => '')
    closing.push(silent.close)
    const away = [`smtp://127.0.0.1:${silent.port}`, 'smtp://127.0.0.1:1']
    const other = await startGateway(section(String(away[0])), stores)
    closing.push(() => other.stop())
    const use = (smtp: string) => other.configure([/smtp: "[^"]*"/, `smtp: "${smtp}"`])
    const user = await newUser(other)
    const rows = () =>
      other.sql<{ attempts: number; due_at: Date }>('select attempts, due_at from mails where user_id = $1', [
        user.id,
      ])
    for (const [i, smtp] of away.entries()) {
      await use(smtp)
      const begin = performance.now()
      expect((await post('password/forgot', { email: user.email }, { base: other.url })).status).toBe(202)
      expect(performance.now() - begin).toBeLessThan(1_000)
      await expect.poll(async () => (await rows())[i]?.attempts, { timeout: 5_000 }).toBe(1)
      expect((await call(other.admin, 'GET', '/readyz')).status).toBe(200)
    }
    await use(`smtp://localhost:${server.port}`)
    other.clock.at += 40_000
    await mailTo(user.email, /mot de passe - /)
  })
})
