// Checks the `mail` section and its folder of templates.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Diagnostic } from '../diagnostics.ts'
import { parseSmtp } from '../formats/mail.ts'
import { inUtf8, maxValueBytes, type ReadFile, readErrorReason } from '../read-file.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

interface WrittenMail {
  smtp?: unknown
  from?: unknown
  templates?: unknown
}

function writtenMail(yaml: YamlSource): WrittenMail {
  return (yaml.value as { mail?: WrittenMail | null }).mail ?? {}
}

/**
 * @param env the environment variables; if `NODE_ENV` is `production`, mails must not go to the log, because many
 * people can read it
 */
export function checkMail(
  yaml: YamlSource,
  validation: Validation,
  env: Readonly<Record<string, string | undefined>>,
): Diagnostic[] {
  const { smtp, from } = writtenMail(yaml)
  if (typeof smtp !== 'string' || smtp === '' || !validation.isValid('/mail/smtp')) return []
  const diagnostics: Diagnostic[] = []
  if (smtp === 'log' && env.NODE_ENV === 'production') {
    const message =
      'cannot be "log" when NODE_ENV is production, because the log would contain the codes of all users'
    diagnostics.push(diagnosticAt(yaml, '/mail/smtp', message))
  }
  if (from === '' && validation.isValid('/mail/from')) {
    const pointer = yaml.locations.has('/mail/from') ? '/mail/from' : '/mail'
    const message =
      'a sender is required if mail.smtp is set; for example, from: Péage <no-reply@example.com>'
    diagnostics.push(diagnosticAt(yaml, pointer, message))
  }
  return diagnostics
}

/** Checks that the folder exists, and that each template in it is readable as UTF-8 text. Templates may be missing. */
export function checkMailTemplates(
  yaml: YamlSource,
  validation: Validation,
  readFile: ReadFile,
): Diagnostic[] {
  const { templates } = writtenMail(yaml)
  if (typeof templates !== 'string' || !validation.isValid('/mail/templates')) return []
  const problem = folderProblem(templates) ?? templateProblem(templates, inUtf8(readFile))
  return problem === undefined
    ? []
    : [diagnosticAt(yaml, '/mail/templates', `${JSON.stringify(templates)} ${problem}`)]
}

function folderProblem(folder: string): string | undefined {
  try {
    return statSync(folder).isDirectory() ? undefined : 'is not a directory'
  } catch (error) {
    return `cannot be read (${readErrorReason(error).replace('no such file', 'no such directory')})`
  }
}

function templateProblem(folder: string, readFile: ReadFile): string | undefined {
  for (const name of templateFiles) {
    try {
      readFile(join(folder, name), maxValueBytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        return `contains a ${name} that cannot be read (${readErrorReason(error)})`
    }
  }
  return undefined
}

const templateFiles = ['reset', 'verify', 'email', 'notice'].flatMap(name => [`${name}.txt`, `${name}.html`])

/** Warns of settings that work but are not suitable for production. */
export function warnOfMail(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { smtp } = writtenMail(yaml)
  if (typeof smtp !== 'string' || !validation.isValid('/mail/smtp')) return []
  const server = parseSmtp(smtp)
  if (server === 'log') {
    return [
      diagnosticAt(yaml, '/mail/smtp', 'prints mails with their codes to the log, and does not send them'),
    ]
  }
  if (server?.tls !== 'off') return []
  return [
    diagnosticAt(yaml, '/mail/smtp', 'has ?tls=off, so mails, codes and the password are sent unencrypted'),
  ]
}
