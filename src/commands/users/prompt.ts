// Asks the operator for a password or for a confirmation.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { passwordRefusal } from '../../accounts/password.ts'
import type { Io } from '../io.ts'

/**
 * Reads a new password from standard input, or asks for it twice at a prompt.
 * @throws Error if the password is invalid, or if the two entries differ
 */
export async function readPassword(io: Io, from: 'stdin' | 'prompt'): Promise<string> {
  if (from === 'stdin') return validPassword(await readAll(io))
  return prompt(io, { hidden: true }, async ask => {
    const password = validPassword(await ask('New password: '))
    if ((await ask('Repeat the password: ')) === password) return password
    throw new Error('the passwords do not match; nothing was changed')
  })
}

/** Asks the operator to confirm. Only the answers `y` and `yes` confirm. */
export function confirm(io: Io, question: string): Promise<boolean> {
  return prompt(io, { hidden: false }, async ask => /^\s*y(es)?\s*$/i.test(await ask(`${question} [y/N] `)))
}

type Ask = (question: string) => Promise<string>

/** Questions are written to standard error, so that standard output contains only the result. */
async function prompt<T>(
  io: Io,
  { hidden }: { hidden: boolean },
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  // With `terminal`, readline turns off the kernel's echo and writes its own echo to `output`. Here, `output` discards
  // everything, so the password is not shown.
  const reader = hidden
    ? createInterface({ input: io.stdin, output: discard(), terminal: true, historySize: 0 })
    : createInterface({ input: io.stdin, terminal: false })
  // All questions share one iterator, so that lines that are typed or pasted early are not lost.
  const lines = reader[Symbol.asyncIterator]()
  try {
    return await work(async question => {
      io.stderr.write(question)
      const { done, value } = await lines.next()
      if (hidden || done) io.stderr.write('\n')
      if (done) throw new Error('no input; nothing was changed')
      return value
    })
  } finally {
    reader.close()
  }
}

function discard(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() })
}

/**
 * The maximum size of the input. The longest password has 1,024 code points of four bytes each. A line end of one or
 * two bytes can follow.
 */
const maxInputBytes = 4 * 1024 + 2

async function readAll({ stdin }: Io): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    length += bytes.length
    if (length > maxInputBytes) throw passwordError('password_too_long')
  }
  return withoutNewline(decoded(Buffer.concat(chunks)))
}

/** `echo` or an editor appends one newline, which is not part of the password. */
function withoutNewline(text: string): string {
  return text.replace(/\r?\n$/, '')
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Error('the password on standard input is not UTF-8 text')
  }
}

function validPassword(password: string): string {
  const refusal = passwordRefusal(password)
  if (refusal !== undefined) throw passwordError(refusal)
  return password
}

function passwordError(refusal: NonNullable<ReturnType<typeof passwordRefusal>>): Error {
  const limit = refusal === 'password_too_short' ? 'short: use at least 8' : 'long: use at most 1024'
  return new Error(`the password is too ${limit} characters`)
}
