// Generates the bodies that the corpus describes by a call such as `@json_pad(65536)`, and their framing headers.
import { chunked, requestBytes } from './raw-client.ts'

/** The body of a request and the header that states its length or coding. */
export interface Framed {
  framing: string[]
  body: Buffer
  /** True if the header declares more bytes than the body has. */
  withheld: boolean
}

/**
 * Returns the body for a generator call. Returns `undefined` for the call `parallel`, because this call describes how
 * to send requests, not a body.
 */
export function generated(call: string): Framed | undefined {
  const [, name = '', list = ''] = /^@(\w+)\((.*)\)$/s.exec(call) ?? []
  const argument = Number(list.split(',', 1)[0])
  switch (name) {
    case 'json_pad':
      return declared(jsonPad(argument))
    case 'chunked_json_pad':
      return inChunks(jsonPad(argument))
    case 'announce':
      return { framing: [`Content-Length: ${argument}`], body: Buffer.alloc(0), withheld: true }
    case 'email_len':
      return declared(Buffer.from(JSON.stringify({ email: emailOf(argument), password: '12345678' })))
    case 'repeat':
      return declared(Buffer.from(repeated(call)))
    case 'parallel':
      return undefined
    default:
      throw new Error(`no generator for ${call}`)
  }
}

export function declared(body: Buffer): Framed {
  return { framing: [`Content-Length: ${body.length}`], body, withheld: false }
}

export function inChunks(body: Buffer, size = 16_384): Framed {
  const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, i) =>
    body.subarray(i * size, (i + 1) * size),
  )
  return { framing: ['Transfer-Encoding: chunked'], body: chunked(...chunks), withheld: false }
}

export function framedRequest(method: string, target: string, lines: string[], framed: Framed): Buffer {
  return requestBytes(method, target, [...lines, ...framed.framing], framed.body)
}

/** Returns a JSON object of `bytes` bytes. */
export function jsonPad(bytes: number): Buffer {
  const frame = '{"pad":""}'
  return Buffer.from(`{"pad":"${'a'.repeat(bytes - frame.length)}"}`)
}

/** Returns an email address of `length` characters. */
function emailOf(length: number): string {
  const domain = '@example.com'
  return `${'a'.repeat(length - domain.length)}${domain}`
}

/** Evaluates calls like `repeat("[",50000)+repeat("]",50000)`. */
function repeated(call: string): string {
  return [...call.matchAll(/repeat\("([^"]*)",(\d+)\)/g)]
    .map(([, text = '', times = '0']) => text.repeat(Number(times)))
    .join('')
}
