// Sends mails to real SMTP servers, and checks the received mail, the encryption and the reported failures.
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { parseSmtp, type SmtpServer } from '../../../src/config/formats/mail.ts'
import { NoConnectionFree, type OutgoingMail } from '../../../src/mail/sending/mail-sender.ts'
import { openMailSender } from '../../../src/mail/sending/open-sender.ts'
import { SmtpFailure } from '../../../src/mail/sending/smtp-failure.ts'
import { createSmtpSender } from '../../../src/mail/sending/smtp-sender.ts'
import { createLogger } from '../../../src/observability/logger.ts'
import { startMailServer, startScriptedServer } from '../../support/smtp.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map(close => close()))
})

function mail(to = 'ada@example.com'): OutgoingMail {
  return {
    kind: 'reset',
    from: { name: 'Péage, "le"', address: 'no-reply@example.com' },
    to,
    subject: 'Votre été\r\nBcc: x@y.fr',
    text: 'Bonjour,\n\n12345678\n\n.\nÀ bientôt\n',
    messageId: '<1@example.com>',
    date: new Date(0),
  }
}

function server(url: string): SmtpServer {
  const parsed = parseSmtp(url)
  if (parsed === undefined || parsed === 'log') throw new Error('no server')
  return parsed
}

function sender(url: string, waitMs = 20_000) {
  const opened = createSmtpSender(server(url), waitMs)
  closing.push(opened.close)
  return opened
}

const never = () => new AbortController().signal

async function failureOf(url: string, to?: string, signal = never()): Promise<SmtpFailure> {
  const error: unknown = await sender(url)
    .send(mail(to), signal)
    .catch(thrown => thrown)
  expect(error).toBeInstanceOf(SmtpFailure)
  return error as SmtpFailure
}

async function mailServer(...options: Parameters<typeof startMailServer>) {
  const started = await startMailServer(...options)
  closing.push(started.close)
  return started
}

async function scripted(...script: Parameters<typeof startScriptedServer>) {
  const started = await startScriptedServer(...script)
  closing.push(started.close)
  return started
}

const refusal = (responseCode: number, text = 'no') => Object.assign(new Error(text), { responseCode })

describe('a mail', () => {
  it('arrives unchanged with one recipient, and a line break in the subject adds no header', async () => {
    const { port, received } = await mailServer()
    await sender(`smtp://127.0.0.1:${port}`).send(mail(), never())
    const [{ from, to, parsed, raw }] = (await received(1)) as [
      Awaited<ReturnType<typeof received>>[0] & object,
    ]
    expect([from, to]).toEqual(['no-reply@example.com', ['ada@example.com']])
    expect(parsed.from?.value).toEqual([{ address: 'no-reply@example.com', name: 'Péage, "le"' }])
    expect(parsed.to?.value).toEqual([{ address: 'ada@example.com', name: '' }])
    expect([parsed.cc, parsed.bcc]).toEqual([undefined, undefined])
    expect(parsed.subject).toBe('Votre été Bcc: x@y.fr')
    expect(parsed.text).toBe('Bonjour,\n\n12345678\n\n.\nÀ bientôt\n')
    expect(parsed.headers.get('auto-submitted')).toBe('auto-generated')
    expect(raw).not.toMatch(/^bcc:/im)
    expect(parsed.messageId).toBe('<1@example.com>')
  })

  it.each(['"john doe"@example.com', "o'neil+x@example.com", '"a\\"b;c"@example.com'])(
    'is sent only to the address %s',
    async address => {
      const { port, lines } = await scripted(() => undefined)
      await sender(`smtp://127.0.0.1:${port}`).send(mail(address), never())
      expect(lines.filter(line => line.startsWith('RCPT'))).toEqual([`RCPT TO:<${address}>`])
      const header = lines.filter(line => /^(to|cc|bcc):/i.test(line))
      expect(header).toHaveLength(1)
      expect(header[0]).toContain('@example.com')
    },
  )

  it('is sent after an EHLO command with the host name from the URL parameter ?name=', async () => {
    const { port, lines } = await scripted(() => undefined)
    await sender(`smtp://127.0.0.1:${port}?name=gw.example.com`).send(mail(), never())
    expect(lines[0]).toBe('EHLO gw.example.com')
  })

  it('is written to the log with its code if the configured SMTP server is "log"', async () => {
    const printed: string[] = []
    const output = new Writable({
      write(chunk, _encoding, written) {
        printed.push(String(chunk))
        written()
      },
    })
    const logger = await createLogger({ level: 'info', requests: true }, output)
    await openMailSender('log', logger).send(mail(), never())
    const { kind, to, subject, text } = mail()
    expect(printed.map(line => JSON.parse(line))).toMatchObject([{ msg: 'mail', kind, to, subject, text }])
  })

  it('shares a connection with later mails; at most ten connections are open at the same time', async () => {
    const { port, received } = await mailServer()
    const one = sender(`smtp://127.0.0.1:${port}`)
    await one.send(mail(), never())
    await one.send(mail(), never())
    await Promise.all(Array.from({ length: 20 }, () => one.send(mail(), never())))
    const connections = (await received(22)).map(({ connection }) => connection)
    expect(connections[0]).toBe(connections[1])
    expect(new Set(connections).size).toBe(10)
  })

  it('uses a new connection if the server has closed the previous connection', async () => {
    let closeAfter = true
    const { port } = await scripted((event, _, socket) => {
      if (event === '.' && closeAfter) setImmediate(() => socket.destroy())
      return undefined
    })
    const one = sender(`smtp://127.0.0.1:${port}`)
    await one.send(mail(), never())
    await sleep(20)
    closeAfter = false
    await one.send(mail(), never())
  })

  it('waits only a limited time for a free connection', async () => {
    const { port } = await scripted(event => (event === 'EHLO' ? '' : undefined))
    const one = sender(`smtp://127.0.0.1:${port}`, 20)
    const abort = new AbortController()
    const hanging = Array.from({ length: 10 }, () =>
      one.send(mail(), abort.signal).catch(error => error.step),
    )
    await expect(one.send(mail(), never())).rejects.toBeInstanceOf(NoConnectionFree)
    abort.abort()
    expect(await Promise.all(hanging)).toEqual(Array(10).fill('deadline'))
  })
})

describe('encryption', () => {
  it('is used on loopback if the server offers encryption, and is never used with ?tls=off', async () => {
    const { port, received } = await mailServer()
    await sender(`smtp://localhost:${port}`).send(mail(), never())
    await sender(`smtp://127.0.0.1:${port}?tls=off`).send(mail(), never())
    expect((await received(2)).map(({ secure }) => secure)).toEqual([true, false])
    const plain = await mailServer({ disabledCommands: ['STARTTLS'] })
    await sender(`smtp://localhost:${plain.port}`).send(mail(), never())
    expect((await plain.received(1))[0]?.secure).toBe(false)
  })

  it('fails if the certificate is untrusted; no password or mail is sent', async () => {
    const auths: unknown[] = []
    const onAuth = (auth: object, _: unknown, done: (error: null, response: { user: string }) => void) => {
      auths.push(auth)
      done(null, { user: 'me' })
    }
    const implicit = await mailServer({ secure: true, onAuth })
    const starttls = await mailServer({ onAuth })
    const strict = { ...server(`smtp://me:secret@127.0.0.1:${starttls.port}`), tls: 'starttls' } as const
    const failures = [
      await failureOf(`smtps://me:secret@localhost:${implicit.port}`),
      await createSmtpSender(strict, 1)
        .send(mail(), never())
        .catch(error => error),
    ]
    expect(failures.map(({ step, isPermanent }) => [step, isPermanent])).toEqual([
      ['certificate', false],
      ['certificate', false],
    ])
    expect([auths, implicit.mails, starttls.mails]).toEqual([[], [], []])
  })

  it('fails if the configuration requires encryption but the server does not offer it; no password or mail is sent', async () => {
    const { port, lines } = await scripted(event => (event === 'STARTTLS' ? '502 no' : undefined))
    const strict = { ...server(`smtp://me:secret@127.0.0.1:${port}`), tls: 'starttls' } as const
    const failure = await createSmtpSender(strict, 1)
      .send(mail(), never())
      .catch(error => error)
    expect([failure.step, failure.isPermanent]).toEqual(['tls', false])
    expect(lines.map(line => line.split(' ')[0])).toEqual(['EHLO', 'STARTTLS'])
  })
})

describe('a failure', () => {
  it('has the step "name" for an unknown host, and the step "connect" for a refused connection', async () => {
    expect(await failureOf('smtp://nowhere.invalid:25?tls=off')).toMatchObject({ step: 'name' })
    const { port, close } = await startScriptedServer(() => undefined)
    await close()
    expect(await failureOf(`smtp://127.0.0.1:${port}`)).toMatchObject({
      step: 'connect',
      message: 'ECONNREFUSED',
    })
  })

  it('is temporary if a password is configured but the server offers no login', async () => {
    const { port, lines } = await scripted(() => undefined)
    const failure = await failureOf(`smtp://me:secret@127.0.0.1:${port}?tls=off`)
    expect(failure).toMatchObject({
      step: 'login',
      isPermanent: false,
      message: 'the server does not offer a login',
    })
    expect(lines.map(line => line.split(' ')[0])).toEqual(['EHLO'])
  })

  it('during login contains only the reply codes, because the text of the reply may repeat the password', async () => {
    const { port } = await mailServer({
      onAuth: ({ password }, _, done) => done(refusal(535, `5.7.8 wrong: ${password}`)),
    })
    const failure = await failureOf(`smtp://me:hunter2hunter2@127.0.0.1:${port}`)
    expect(failure).toMatchObject({ step: 'login', replyCode: 535, isPermanent: false, message: '535 5.7.8' })
  })

  it('is permanent if the server refuses the recipient or the mail text with 5xx, and temporary otherwise', async () => {
    const cases: [string, string, number, boolean][] = [
      ['connect', 'greeting', 554, false],
      ['connect', 'greeting', 421, false],
      ['MAIL', 'sender', 550, false],
      ['MAIL', 'sender', 451, false],
      ['RCPT', 'recipient', 550, true],
      ['RCPT', 'recipient', 452, false],
      ['DATA', 'text', 554, true],
      ['DATA', 'text', 451, false],
      ['.', 'text', 550, true],
      ['.', 'text', 452, false],
    ]
    for (const [event, step, code, isPermanent] of cases) {
      const { port } = await scripted(asked => (asked === event ? `${code} no` : undefined))
      const failure = await failureOf(`smtp://127.0.0.1:${port}`)
      expect([event, failure.step, failure.replyCode, failure.isPermanent]).toEqual([
        event,
        step,
        code,
        isPermanent,
      ])
    }
  })

  it.each(['EHLO', 'MAIL', 'RCPT', 'DATA', '.'])(
    'is temporary if the connection ends after %s',
    async event => {
      const { port } = await scripted((asked, _, socket) => {
        if (asked !== event) return undefined
        socket.destroy()
        return ''
      })
      expect(await failureOf(`smtp://127.0.0.1:${port}`)).toMatchObject({ isPermanent: false })
    },
  )

  it('is not reported if the server accepts the mail and then resets the connection', async () => {
    const { port } = await scripted((event, _, socket) => {
      if (event === '.') setImmediate(() => socket.resetAndDestroy())
      return undefined
    })
    await sender(`smtp://127.0.0.1:${port}`).send(mail(), never())
  })

  it('is reported at the deadline if the server sends its reply byte by byte without end', async () => {
    const { port } = await scripted((event, _, socket) => {
      if (event !== 'EHLO') return undefined
      const timer = setInterval(() => socket.write('2'), 5)
      socket.on('close', () => clearInterval(timer))
      return ''
    })
    const failure = await failureOf(`smtp://127.0.0.1:${port}`, undefined, AbortSignal.timeout(100))
    expect(failure).toMatchObject({ step: 'deadline', isPermanent: false })
  })
})
