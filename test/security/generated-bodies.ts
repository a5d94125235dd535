// The bodies that the corpus names by a generator call, and how each is put on the wire.
import { chunked, requestBytes } from './raw-client.ts'

/** A request's bytes after its head, and the field that frames them. */
export interface Framed {
  framing: string[]
  body: Buffer
  /** More bytes are announced than are sent. */
  withheld: boolean
}

/** What a generator call stands for; `undefined` where it says how requests are sent rather than what. */
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

/** A JSON object of so many bytes. */
export function jsonPad(bytes: number): Buffer {
  const frame = '{"pad":""}'
  return Buffer.from(`{"pad":"${'a'.repeat(bytes - frame.length)}"}`)
}

/** An email of so many characters. */
function emailOf(length: number): string {
  const domain = '@example.com'
  return `${'a'.repeat(length - domain.length)}${domain}`
}

/** `repeat("[",50000)+repeat("]",50000)` */
function repeated(call: string): string {
  return [...call.matchAll(/repeat\("([^"]*)",(\d+)\)/g)]
    .map(([, text = '', times = '0']) => text.repeat(Number(times)))
    .join('')
}
