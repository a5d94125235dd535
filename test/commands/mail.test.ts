// Tests that `peage mail test` sends one mail through `mail.smtp`, or reports why it failed.
import { afterEach, describe, expect, it } from 'vitest'
import { first } from '../support/certificates.ts'
import { runProgram } from '../support/program.ts'
import { startMailServer, startScriptedServer } from '../support/smtp.ts'
import { commandLine, emptyFolder } from './peage.ts'

const { peage, write } = commandLine()
const folder = emptyFolder()

const closing: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map(close => close()))
})

const yaml = (smtp: string) =>
  `mail: { smtp: ${JSON.stringify(smtp)}, from: "Péage <no-reply@example.com>" }
upstreams: { a: { targets: ["http://a"] } }
routes: [{ path: /a, upstream: a }]`

async function test(smtp: string) {
  const file = write('gateway.yaml', yaml(smtp))
  return peage(['mail', 'test', 'ada@example.com', '-c', file])
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

it('peage mail test sends a mail and prints the server that accepted it', async () => {
  const { port, received } = await mailServer()
  const { exit, stdout } = await test(`smtp://localhost:${port}`)
  expect([exit, stdout]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`^localhost:${port} accepted the mail for ada@example.com \\(<.+@example.com>\\)\n$`),
    ),
  ])
  const [mail] = await received(1)
  expect([mail?.from, mail?.to]).toEqual(['no-reply@example.com', ['ada@example.com']])
})

it.each(['smtps', 'smtp'])(
  'peage mail test over %s uses TLS, trusts the certificates of NODE_EXTRA_CA_CERTS, and logs in',
  async scheme => {
    const { port, mails } = await mailServer({
      secure: scheme === 'smtps',
      authOptional: false,
      onAuth: ({ username, password }, _, done) =>
        password === 'p@ss/%' ? done(null, { user: username ?? '' }) : done(new Error('no')),
    })
    const { writeFile } = await import('node:fs/promises')
    await writeFile(`${folder}/${scheme}.yaml`, yaml(`${scheme}://me:p%40ss%2F%25@localhost:${port}`))
    const words = ['mail', 'test', 'ada@example.com', '-c', `${scheme}.yaml`]
    const { code } = await runProgram(words, folder, { NODE_EXTRA_CA_CERTS: first.files.cert })
    expect(code).toBe(0)
    expect(mails.map(({ secure, user }) => [secure, user])).toEqual([[true, 'me']])
  },
)

describe('a failed peage mail test', () => {
  it('reports a host name that does not exist, and an address at which no server listens', async () => {
    expect(await test('smtp://relay.invalid?tls=off')).toMatchObject({
      exit: 1,
      stderr: expect.stringContaining('error: the name relay.invalid was not found (E'),
    })
    const { port, close } = await startScriptedServer(() => undefined)
    await close()
    expect((await test(`smtp://127.0.0.1:${port}`)).stderr).toBe(
      `error: no connection to 127.0.0.1:${port} (ECONNREFUSED). Nothing listens there, or a firewall rejects the connection.\n`,
    )
  })

  it('reports an untrusted certificate, and a server that does not begin the connection with TLS', async () => {
    const implicit = await mailServer({ secure: true })
    expect((await test(`smtps://localhost:${implicit.port}`)).stderr).toContain(
      `the certificate of localhost:${implicit.port} is not valid for localhost, or this machine does not trust it`,
    )
    const plain = await mailServer()
    expect((await test(`smtps://localhost:${plain.port}`)).stderr).toContain(
      'does not use TLS from the start',
    )
  })

  it('reports refused credentials without printing them', async () => {
    const { port } = await mailServer({ onAuth: (_, __, done) => done(new Error('no')) })
    const { exit, stderr } = await test(`smtp://someone:hunter2hunter2@localhost:${port}`)
    expect([exit, stderr]).toEqual([
      1,
      `error: localhost:${port} rejected the user and password (the server replied: 535). Check them, and percent-encode both in mail.smtp.\n`,
    ])
  })

  it.each([
    ['connect', 'did not send the greeting of a mail server (the server replied: 554 no)'],
    ['MAIL', 'rejected the sender no-reply@example.com (the server replied: 554 no)'],
    ['RCPT', 'rejected the recipient ada@example.com (the server replied: 554 no)'],
    ['.', 'rejected the text of the mail (the server replied: 554 no)'],
  ])('reports which SMTP step the server refused: %s', async (event, words) => {
    const { port } = await scripted(asked => (asked === event ? '554 no' : undefined))
    const { exit, stderr } = await test(`smtp://localhost:${port}`)
    expect([exit, stderr]).toEqual([1, expect.stringContaining(words)])
  })

  it('reports that mail.smtp is empty, that it is `log`, or that the recipient is invalid', async () => {
    expect((await test('')).stderr).toBe(
      'error: mail.smtp is not set in gateway.yaml, so the gateway cannot send mails\n',
    )
    expect((await test('log')).stderr).toContain('the gateway writes mails to its log and sends none')
    const file = write('gateway.yaml', yaml('smtp://localhost:1'))
    expect(await peage(['mail', 'test', 'a@b, c@d', '-c', file])).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: 'error: "a@b, c@d" is not a valid mail address\n',
    })
  })
})
