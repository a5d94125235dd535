// Describes why a mail was not sent: the step, the server's reply, and whether a retry can help.

/**
 * The steps in the order of the SMTP conversation. The last two can occur at any step. `connection` means that the
 * connection ended or stalled. `deadline` means that the time limit of the attempt expired.
 */
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
  /** The reply code of the server, if a reply ended the attempt. */
  readonly replyCode: number | undefined

  constructor(step: SmtpStep, message: string, replyCode?: number) {
    super(message)
    this.step = step
    this.replyCode = replyCode
  }

  /**
   * Returns whether a retry is useless. A 5xx reply at `recipient` or `text` concerns this mail, so a retry is useless.
   * At another step, a 5xx reply concerns the relay or its settings. An operator may fix the relay or the settings, so
   * the mail is retried.
   */
  get isPermanent(): boolean {
    const isOfThisMail = this.step === 'recipient' || this.step === 'text'
    return isOfThisMail && this.replyCode !== undefined && this.replyCode >= 500
  }
}

interface ConnectionError extends NodeJS.ErrnoException {
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
  /** The code of the original system or TLS error. */
  readonly originalCode?: string
}

/** @param isReady whether the conversation has reached the login */
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

/**
 * Describes a failure in one line. For a reply to the login, the result is only the reply code, because the text of the
 * reply may repeat the credentials.
 */
function describe(step: SmtpStep, message: string, response: string | undefined): string {
  if (response === undefined) return oneLine(message)
  const [code = ''] = /^\d{3}( \d\.\d{1,3}\.\d{1,3})?/.exec(response) ?? []
  return step === 'login' ? code : oneLine(response)
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, 300)
}
