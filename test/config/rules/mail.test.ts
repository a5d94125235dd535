// What the `mail` section demands of itself and of its folder, and what it is warned of.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { formatDiagnostic, warningLinesOf } from '../../../src/config/diagnostics.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { configOf, linesOf, load } from '../reading.ts'

it('has the defaults of the contract', () => {
  expect(configOf('mail: { smtp: log, from: a@b.fr }').mail).toEqual({
    smtp: 'log',
    from: { name: '', address: 'a@b.fr' },
    product: 'b.fr',
    links: {},
    language: 'fr',
    verify_on_register: false,
    notices: true,
    code_ttl: { reset: 1_800_000, verify: 86_400_000, email: 1_800_000 },
    rate_limits: {
      per_email: { limit: 5, windowMs: 3_600_000 },
      per_address: { limit: 30, windowMs: 3_600_000 },
    },
  })
})

it('needs a sender where mails are sent, at the section where there is none', () => {
  const message = 'needs a sender with an address: from: Péage <no-reply@example.com>'
  expect(linesOf('mail: { smtp: "smtp://mx" }')).toEqual([`1:7  mail  ${message}`])
  expect(linesOf('mail: { smtp: "smtp://mx", from: "${FROM:-}" }')).toEqual([`1:34  mail.from  ${message}`])
})

it('has codes good for 1s to 30d', () => {
  for (const ttl of ['1s', '30d']) expect(linesOf(`mail: { code_ttl: { reset: ${ttl} } }`)).toEqual([])
  expect(linesOf('mail: { code_ttl: { reset: 31d, verify: 500ms } }')).toEqual([
    '1:28  mail.code_ttl.reset  must be at most 30d',
    '1:41  mail.code_ttl.verify  must be in whole seconds',
  ])
})

it('refuses the log in production, and warns of it elsewhere', () => {
  const text = 'mail: { smtp: log, from: a@b.fr }'
  expect(linesOf(text, { NODE_ENV: 'production' })).toEqual([
    '1:15  mail.smtp  cannot be log where NODE_ENV is production: the log would hold the codes of every user',
  ])
  expect(warningsOf(text)).toEqual([
    'mail.smtp  warning: prints mails with their codes to the log, and sends none',
  ])
})

it('warns of a server that is spoken to in clear', () => {
  expect(warningsOf('mail: { smtp: "smtp://mx?tls=off", from: a@b.fr }')).toEqual([
    'mail.smtp  warning: has ?tls=off: mails, codes and the password go unencrypted',
  ])
  for (const smtp of ['smtp://localhost', 'smtp://mx', '']) {
    expect(warningsOf(`mail: { smtp: "${smtp}", from: a@b.fr }`)).toEqual([])
  }
})

it('needs the folder of templates to be there, and text in its files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'peage-'))
  const file = join(folder, 'x')
  writeFileSync(file, '')
  const problemsWith = (templates: string) => {
    const text = `mail: { templates: ${JSON.stringify(templates)} }`
    const readFile = (path: string) => (path === 'gateway.yaml' ? text : readFileSync(path, 'utf8'))
    const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile, toServe: true })
    return 'problems' in loaded ? loaded.problems.map(formatDiagnostic) : []
  }
  expect(problemsWith(folder)).toEqual([])
  writeFileSync(join(folder, 'reset.html'), Buffer.from([0xff]))
  expect(problemsWith(folder)).toEqual([
    `gateway.yaml:1:20  mail.templates  names the folder "${folder}", which has a reset.html that cannot be read (not UTF-8 text)`,
  ])
  expect(problemsWith(file)).toEqual([
    `gateway.yaml:1:20  mail.templates  names the folder "${file}", which is no folder`,
  ])
  expect(problemsWith(`${folder}/none`)).toEqual([
    `gateway.yaml:1:20  mail.templates  names the folder "${folder}/none", which cannot be read (no such folder)`,
  ])
})

function warningsOf(text: string): string[] {
  const loaded = load(text)
  if ('problems' in loaded) throw new Error('refused')
  return warningLinesOf(loaded.warnings).map(line => line.replace(/^\S+ {2}/, ''))
}
