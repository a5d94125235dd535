// Defines `peage mail test ADDRESS`, which sends one mail as the gateway would and shows the result.
import { randomUUID } from 'node:crypto'
import { Command } from 'commander'
import type { SmtpServer } from '../../config/formats/mail.ts'
import { isMailbox } from '../../config/formats/mailbox.ts'
import type { MailConfig } from '../../config/sections/schema.ts'
import type { OutgoingMail } from '../../mail/sending/mail-sender.ts'
import { SmtpFailure } from '../../mail/sending/smtp-failure.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import { describeFailure } from './describe-failure.ts'

export function mailCommand(io: Io): Command {
  const test = withConfigOption(new Command('test'))
    .description('Send a test mail through mail.smtp and show the result')
    .argument('<address>', 'recipient of the mail')
    .action(async (address: string, { config: file }: ConfigOption, command: Command) => {
      if (!isMailbox(address)) {
        command.error(`error: ${JSON.stringify(address)} is not a valid mail address`, { exitCode: 2 })
      }
      const { readConfig } = await import('../read-config.ts')
      const { mail } = readConfig(io, file, io.stderr)
      if (mail === undefined)
        throw new Error(`mail.smtp is not set in ${file}, so the gateway cannot send mails`)
      await sendTest(io, mail, address)
    })
  return new Command('mail').description('Test whether mails can be sent').addCommand(test)
}

async function sendTest(io: Io, { smtp, from, product }: MailConfig, to: string): Promise<void> {
  if (smtp === 'log')
    throw new Error('mail.smtp is "log", so the gateway writes mails to its log and sends none')
  const mail = testMail(from, to, product)
  try {
    await send(smtp, mail)
  } catch (error) {
    if (!(error instanceof SmtpFailure)) throw error
    throw new Error(describeFailure(error, smtp, mail))
  }
  await print(io.stdout, [`${smtp.host}:${smtp.port} accepted the mail for ${to} (${mail.messageId})\n`])
}

/** The time limit for the whole SMTP conversation. */
const deadlineMs = 30_000

async function send(server: SmtpServer, mail: OutgoingMail): Promise<void> {
  const { createSmtpSender } = await import('../../mail/sending/smtp-sender.ts')
  const sender = createSmtpSender(server, deadlineMs)
  try {
    await sender.send(mail, AbortSignal.timeout(deadlineMs))
  } finally {
    sender.close()
  }
}

function testMail(from: MailConfig['from'], to: string, product: string): OutgoingMail {
  return {
    kind: 'test',
    from,
    to,
    subject: `Test mail - ${product}`,
    text: `This is a test mail from ${product}. The gateway can send mails to this address.\n`,
    messageId: `<${randomUUID()}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    date: new Date(),
  }
}
