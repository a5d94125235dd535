// Why a mail was not sent: at which step of the conversation, what the server said, and whether trying again can help.

/** In the order of the conversation. `connection` is one that ended or stood still anywhere in it. */
export type SmtpStep =
  | 'name'
  | 'connect'
  | 'greeting'
  | 'tls'
  | 'certificate'
  | 'login'
  | 'sender'
  | 'recipient'
  | 'text'
  | 'connection'
  | 'deadline'

export class SmtpFailure extends Error {
  override readonly name = 'SmtpFailure'
  readonly step: SmtpStep
  /** The server's reply code, if it was a reply that ended the attempt. */
  readonly replyCode: number | undefined

  constructor(step: SmtpStep, message: string, replyCode?: number) {
    super(message)
    this.step = step
    this.replyCode = replyCode
  }

  /**
   * A 5xx to recipient or text is about this mail. One at greeting, TLS, login or sender is about the relay or its
   * settings, which somebody may mend: it is tried again (CONTRACT §12).
   */
  get isPermanent(): boolean {
    const isOfThisMail = this.step === 'recipient' || this.step === 'text'
    return isOfThisMail && this.replyCode !== undefined && this.replyCode >= 500
  }
}

/** What nodemailer and node:net tell of an error. */
interface ConnectionError extends NodeJS.ErrnoException {
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
  /** Of the system's or TLS's error that it stands for. */
  readonly originalCode?: string
}

/** @param isReady whether the conversation had come as far as the login */
export function toSmtpFailure(error: unknown, isReady: boolean): SmtpFailure {
  if (error instanceof SmtpFailure) return error
  const { command = '', code = '', message, response, responseCode, originalCode } = error as ConnectionError
  const step = stepOf({ command, code, causeCode: originalCode ?? code }, isReady)
  return new SmtpFailure(step, describe(step, message, response), responseCode)
}

function stepOf(
  { command, code, causeCode }: { command: string; code: string; causeCode: string },
  isReady: boolean,
): SmtpStep {
  if (command.startsWith('AUTH') || code === 'EAUTH') return 'login'
  const step = commands[command]
  if (step !== undefined) return step
  if (causeCode === 'ENOTFOUND' || causeCode === 'EAI_AGAIN') return 'name'
  if (isCertificateCode(causeCode)) return 'certificate'
  if (code === 'ETLS' || command === 'STARTTLS' || causeCode.startsWith('ERR_SSL')) return 'tls'
  return isReady ? 'connection' : 'greeting'
}

const commands: Readonly<Record<string, SmtpStep>> = {
  'MAIL FROM': 'sender',
  'RCPT TO': 'recipient',
  DATA: 'text',
}

function isCertificateCode(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ALTNAME|CA_|SIGNATURE/.test(code)
}

/** A login's reply may repeat what was sent to it, so its text is left out. */
function describe(step: SmtpStep, message: string, response: string | undefined): string {
  if (response === undefined) return oneLine(message)
  const [code = ''] = /^\d{3}( \d\.\d{1,3}\.\d{1,3})?/.exec(response) ?? []
  return step === 'login' ? code : oneLine(response)
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, 300)
}
