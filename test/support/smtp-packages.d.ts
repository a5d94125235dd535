// Types for the parts of smtp-server and mailparser that the tests use. The published types of these packages depend on
// another version of nodemailer.
declare module 'smtp-server' {
  import type { EventEmitter } from 'node:events'
  import type { AddressInfo } from 'node:net'
  import type { Readable } from 'node:stream'

  export interface SMTPServerSession {
    readonly id: string
    readonly secure: boolean
    readonly hostNameAppearsAs: string
    readonly user?: string
    readonly envelope: {
      readonly mailFrom: { readonly address: string } | false
      readonly rcptTo: readonly { readonly address: string }[]
    }
  }
  type Done = (error?: (Error & { responseCode?: number }) | null) => void

  export interface SMTPServerOptions {
    secure?: boolean
    key?: string
    cert?: string
    disabledCommands?: string[]
    authOptional?: boolean
    allowInsecureAuth?: boolean
    disableReverseLookup?: boolean
    closeTimeout?: number
    logger?: boolean
    onAuth?(
      auth: { username?: string; password?: string },
      session: SMTPServerSession,
      done: (error: Error | null, response?: { user: string }) => void,
    ): void
    onConnect?(session: SMTPServerSession, done: Done): void
    onMailFrom?(address: { address: string }, session: SMTPServerSession, done: Done): void
    onRcptTo?(address: { address: string }, session: SMTPServerSession, done: Done): void
    onData?(stream: Readable, session: SMTPServerSession, done: Done): void
  }

  export class SMTPServer extends EventEmitter {
    constructor(options: SMTPServerOptions)
    readonly server: { address(): AddressInfo }
    listen(port: number, host: string, done: () => void): void
    close(done: () => void): void
  }
}

declare module 'mailparser' {
  export interface ParsedMail {
    readonly subject?: string
    readonly text?: string
    readonly html?: string | false
    readonly messageId?: string
    readonly headers: Map<string, unknown>
    readonly from?: { readonly text: string; readonly value: readonly { address?: string; name: string }[] }
    readonly to?: { readonly text: string; readonly value: readonly { address?: string; name: string }[] }
    readonly cc?: unknown
    readonly bcc?: unknown
  }
  export function simpleParser(source: string): Promise<ParsedMail>
}
