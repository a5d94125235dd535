// A second HTTP/1.1 parser, independent of Node's parser. It accepts only the grammar of RFC 9112.

export interface StrictRequest {
  readonly method: string
  readonly target: string
  /** The headers in the order received, without white space around the values. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** The body. Undefined if it is malformed or incomplete. */
  readonly body: string | undefined
}

/**
 * Reads the requests of a connection. Stops before a malformed head, and after a request whose end is not clear.
 * @param bytes all bytes that the client sent, in latin1
 */
export function readStrictly(bytes: string): StrictRequest[] {
  const requests: StrictRequest[] = []
  let rest = bytes
  for (;;) {
    // Empty lines before a request line are ignored (RFC 9112 §2.2). A bare CR or LF is ignored too, as in Node.
    rest = rest.replace(/^[\r\n]+/, '')
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) return requests
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n')
    const [, method, target, version] = requestLine.exec(first) ?? []
    const fields = lines.map(line => fieldLine.exec(line))
    if (method === undefined || target === undefined || fields.includes(null)) return requests
    const named = fields.map(match => [match?.[1] ?? '', (match?.[2] ?? '').replace(/[ \t]+$/, '')] as const)
    const body = bodyOf(rest.slice(end + 4), named, version === '1')
    requests.push({ method, target, fields: named, body: body?.content })
    if (body === undefined) return requests
    rest = rest.slice(end + 4 + body.length)
  }
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
// RFC 9112 §3 allows only one space between the parts. Node accepts several, so this parser does too. The spaces are
// not part of the request target.
const requestLine = new RegExp(`^(${token}) +([!-~\\x80-\\xff]+) +HTTP/1\\.([01])$`)
const fieldLine = new RegExp(`^(${token}):[ \\t]*([\\t -~\\x80-\\xff]*)$`)

function bodyOf(
  rest: string,
  fields: readonly (readonly [string, string])[],
  mayBeChunked: boolean,
): { content: string; length: number } | undefined {
  const all = (name: string) =>
    fields.filter(([other]) => other.toLowerCase() === name).map(([, value]) => value)
  const [codings, lengths] = [all('transfer-encoding'), all('content-length')]
  if (codings.length + lengths.length > 1) return undefined
  if (codings[0] !== undefined) {
    return mayBeChunked && codings[0].toLowerCase() === 'chunked' ? chunks(rest) : undefined
  }
  const [length = '0'] = lengths
  if (!/^\d{1,15}$/.test(length) || rest.length < Number(length)) return undefined
  return { content: rest.slice(0, Number(length)), length: Number(length) }
}

function chunks(text: string): { content: string; length: number } | undefined {
  let content = ''
  for (let at = 0; ; ) {
    const [head, hex = ''] = chunkHead.exec(text.slice(at)) ?? []
    if (head === undefined) return undefined
    at += head.length
    const size = Number.parseInt(hex, 16)
    if (size === 0) {
      const trailers = new RegExp(`^(?:${fieldLine.source.slice(1, -1)}\\r\\n)*\\r\\n`).exec(text.slice(at))
      return trailers === null ? undefined : { content, length: at + trailers[0].length }
    }
    if (text.slice(at + size, at + size + 2) !== '\r\n') return undefined
    content += text.slice(at, at + size)
    at += size + 2
  }
}

/** Chunk extensions are ignored (RFC 9112 §7.1.1). */
const chunkHead = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t -~\x80-\xff]*)?\r\n/
