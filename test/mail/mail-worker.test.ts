// Sends mails from a real store to a real SMTP server. Each mail is sent only once, is retried after a failure, and is
// not lost in a crash.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { createCodeDerivation, createReadMailedCode } from '../../src/accounts/codes/code-derivation.ts'
import { type AccountCode, insertCode } from '../../src/accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../../src/accounts/codes/code-key-store.ts'
import { parseSmtp } from '../../src/config/formats/mail.ts'
import { noTemplates } from '../../src/mail/composing/templates.ts'
import { createMailQueue, type NewMail } from '../../src/mail/mail-queue.ts'
import { createMailStore } from '../../src/mail/mail-store.ts'
import { startMailWorker } from '../../src/mail/mail-worker.ts'
import type { SmtpFailure } from '../../src/mail/sending/smtp-failure.ts'
import { createSmtpSender } from '../../src/mail/sending/smtp-sender.ts'
import type { OutboxWorker } from '../../src/outbox/outbox-worker.ts'
import { type Database, StorageError } from '../../src/storage/database.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startMailServer, startScriptedServer } from '../support/smtp.ts'
import { addUser } from '../support/users.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

interface Row {
  id: number
  status: string
  attempts: number
  response_status: number | null
  error: string | null
  due_at: Date
}

describeOverSetups('a queued mail', ({ openDatabase: open }) => {
  let database: Database
  let time: number
  let userId: number
  const clock = { now: () => time }
  const counts: string[] = []
  const failures: SmtpFailure[] = []
  const errors: unknown[] = []
  const closing: (() => unknown)[] = []
  beforeAll(async () => {
    database = await open()
  })
  beforeEach(async () => {
    time = Date.now()
    for (const list of [counts, failures, errors]) list.length = 0
    for (const table of ['mails', 'users']) await database.query(`delete from ${table}`)
    userId = await addUser(database, { email: 'ada@example.com' })
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
    expect(errors).toEqual([])
  })
  afterAll(() => database.close())

  const queue = createMailQueue(clock)
  const add = (mail: NewMail) => database.transaction(tx => queue.add(tx, mail))
  const notice = (address = 'ada@example.com') => add({ kind: 'password_changed', userId, address })
  const rows = () => database.query<Row>('select * from mails order by id')

  const mailedCodes = () =>
    createReadMailedCode(database, createCodeDerivation(createCodeKeys(database, undefined)))

  function worker(port: number, mails = createMailStore(database), readCode = mailedCodes()): OutboxWorker {
    const smtp = parseSmtp(`smtp://127.0.0.1:${port}`)
    if (smtp === undefined || smtp === 'log') throw new Error('no server')
    const sender = createSmtpSender(smtp, 20_000)
    const started = startMailWorker({
      mails,
      readCode,
      sendSettings: () => ({
        from: { name: '', address: 'no-reply@example.com' },
        product: 'Example',
        contact: undefined,
        language: 'fr',
        links: { reset: 'https://app.example.com/#{token}' },
        templates: noTemplates,
        sender,
      }),
      clock,
      random: () => 0.5,
      outcomes: { count: (kind, outcome) => counts.push(`${kind} ${outcome}`) },
      onStoreError: error => errors.push(error),
      onFailure: (_, failure) => failures.push(failure),
    })
    closing.push(async () => {
      await started.stop(0)
      sender.close()
    })
    return started
  }

  async function code(ttlMs = 30 * minuteMs): Promise<AccountCode> {
    const made = await database.transaction(tx =>
      insertCode(tx, { purpose: 'reset', email: 'ada@example.com', ttlMs }, new Date(time)),
    )
    if (made === undefined) throw new Error('no code')
    await add({
      kind: 'reset',
      userId,
      address: 'ada@example.com',
      codeId: made.id,
      expiresAt: made.expires_at,
    })
    return made
  }

  async function server(...options: Parameters<typeof startMailServer>) {
    const started = await startMailServer(...options)
    closing.push(started.close)
    return started
  }

  it('contains its code, although no column of the table stores the code, and is recorded as sent', async () => {
    const { port, received } = await server()
    const made = await code()
    worker(port).wake()
    const [mail] = await received(1)
    const derivation = createCodeDerivation(createCodeKeys(database, undefined))
    const expected = await derivation.codeOf(made)
    expect(mail?.parsed.text).toContain(`\n${expected.code}\n`)
    expect(mail?.parsed.text).toContain(`https://app.example.com/#${expected.token}`)
    await expect.poll(async () => (await rows())[0]).toMatchObject({ status: 'sent', attempts: 1 })
    expect(counts).toEqual(['reset sent'])
    expect(JSON.stringify(await rows())).not.toMatch(new RegExp(`${expected.code}|${expected.token}`))
  })

  it('is not stored if its address is not one mailbox or if its transaction is rolled back', async () => {
    for (const address of ['a@b\r\nBcc: c@d', 'a@b,c@d', 'é@b.fr']) await notice(address)
    await database
      .transaction(async tx => {
        await queue.add(tx, { kind: 'password_changed', userId, address: 'ada@example.com' })
        throw new Error('rolled back')
      })
      .catch(() => {})
    expect(await rows()).toEqual([])
  })

  it('is retried with growing delays up to 4 h, and fails after a day', async () => {
    const { port } = await startScripted(event => (event === 'connect' ? '421 later' : undefined))
    await notice()
    const started = worker(port)
    const begin = time
    const delays: number[] = []
    for (let attempts = 1; ; attempts++) {
      started.wake()
      const row = await vi.waitFor(async () => {
        const [found] = await rows()
        if (found?.attempts !== attempts || counts.length < attempts || found.response_status === null)
          throw new Error('not yet')
        if (found.status === 'pending' && found.due_at.getTime() === time + 75_000) throw new Error('leased')
        return found
      }, 5_000)
      if (row.status === 'failed') break
      delays.push(row.due_at.getTime() - time)
      time = row.due_at.getTime()
    }
    expect(delays).toEqual([30_000, 120_000, 600_000, hourMs, ...Array(5).fill(4 * hourMs)])
    expect(time - begin).toBeLessThan(24 * hourMs)
    expect(counts.slice(-2)).toEqual(['password_changed retried', 'password_changed failed'])
  })

  it('fails if its code is invalid or would expire before the next attempt', async () => {
    const { port } = await startScripted(event => (event === 'RCPT' ? '450 later' : undefined))
    await code(20_000)
    await code()
    // Creating this code makes the two earlier codes invalid. This code expires in 25 s, so it expires before the next
    // attempt in 30 s.
    const last = await code(25_000)
    worker(port).wake()
    await expect
      .poll(async () => (await rows()).map(({ status, error }) => [status, error]))
      .toEqual([
        ['failed', 'the mail has expired, or its code is invalid'],
        ['failed', 'the mail has expired, or its code is invalid'],
        ['failed', 'recipient: 450 later'],
      ])
    expect(last.expires_at.getTime()).toBe(time + 25_000)
  })

  it('fails at once after a 5xx reply; if the reply quotes the account code from the mail, this code is not stored', async () => {
    let quoted = ''
    const { port } = await startScripted((event, line) => {
      if (/^\d{8}$/.test(line)) quoted = line
      return event === '.' ? `554 spam: ${quoted}` : undefined
    })
    const derivation = createCodeDerivation(createCodeKeys(database, undefined))
    quoted = (await derivation.codeOf(await code())).code
    worker(port).wake()
    await expect
      .poll(async () => (await rows())[0])
      .toMatchObject({
        status: 'failed',
        attempts: 1,
        response_status: 554,
        error: 'text: 554 spam: …',
      })
  })

  it('is sent by another worker within 90 s after a crash, but not before the lease of the mail ends', async () => {
    const { port, mails } = await server()
    await notice()
    // The test leases the mail and does not send it. This simulates a process that crashes after the lease.
    const store = createMailStore(database)
    await store.lease({ limit: 1, now: new Date(time), leaseUntil: new Date(time + 75_000) })
    time += 74_000
    const started = worker(port)
    started.wake()
    await expect.poll(() => counts).toEqual([])
    time += 15_000
    started.wake()
    await expect.poll(() => mails).toHaveLength(1)
  })

  it('is sent exactly once if two workers share a queue of 40 mails', async () => {
    const { port, received, mails } = await server()
    for (let i = 0; i < 40; i++) await notice(`user${i}@example.com`)
    const workers = [worker(port), worker(port)]
    for (const one of workers) one.wake()
    await received(40)
    await expect.poll(async () => (await rows()).every(({ status }) => status === 'sent')).toBe(true)
    expect(new Set(mails.map(({ to }) => to[0])).size).toBe(40)
    expect(mails).toHaveLength(40)
  })

  it('is not sent again if the store fails for a moment while the worker records the result', async () => {
    const { port, mails } = await server()
    await notice()
    const store = createMailStore(database)
    let isAway = true
    const started = worker(port, {
      ...store,
      async recordAttempt(...recorded) {
        if (isAway) {
          isAway = false
          throw new StorageError('away', undefined, undefined)
        }
        return store.recordAttempt(...recorded)
      },
    })
    started.wake()
    await expect.poll(async () => (await rows())[0]?.status).toBe('sent')
    expect([mails.length, errors.splice(0).length]).toEqual([1, 1])
  })

  it('returns to the queue if its worker stops during an attempt, and this attempt is not counted', async () => {
    const { port } = await startScripted(event => (event === 'EHLO' ? '' : undefined))
    await notice()
    const started = worker(port)
    started.wake()
    await expect.poll(async () => (await rows())[0]?.attempts).toBe(1)
    await started.stop(0)
    expect((await rows())[0]).toMatchObject({ status: 'pending', attempts: 0, error: null })
    expect((await rows())[0]?.due_at.getTime()).toBe(time)
  })

  it('is not sent if the worker is stopped while reading the code from the database', async () => {
    const { port } = await server()
    await code()
    const stopped: Promise<void>[] = []
    const started: OutboxWorker = worker(port, createMailStore(database), async (...args) => {
      stopped.push(started.stop(0))
      await sleep(20)
      return mailedCodes()(...args)
    })
    started.wake()
    await expect.poll(() => stopped).toHaveLength(1)
    await stopped[0]
    expect((await rows())[0]).toMatchObject({ status: 'pending', attempts: 0, error: null })
    expect(counts).toEqual([])
  })

  it('is deleted with its user; a notice that is still unsent is sent first and then deleted', async () => {
    const { port, received } = await server()
    await notice()
    worker(port).wake()
    await received(1)
    await expect.poll(async () => (await rows())[0]?.status).toBe('sent')
    await code()
    await add({ kind: 'email_changed', userId, address: 'before@example.com' })
    await database.query('delete from users where id = $1', [userId])
    worker(port).wake()
    const [, second] = await received(2)
    expect(second?.to).toEqual(['before@example.com'])
    await expect.poll(() => rows()).toEqual([])
  })

  async function startScripted(...script: Parameters<typeof startScriptedServer>) {
    const started = await startScriptedServer(...script)
    closing.push(started.close)
    return started
  }
})
