// Reads the request headers that the gate uses for decisions, and checks that the framing is unambiguous.
import type { IncomingMessage } from 'node:http'
import { isHost } from './request-target.ts'

export interface RequestHeaders {
  host: string | undefined
  authorization: string | undefined
  apiKey: string | undefined
  requestId: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  forwardedFor: string
  /** The size of all headers as received, in bytes. */
  bytes: number
  /** Whether there are two `Authorization` or two `X-API-Key` headers. */
  hasAmbiguousCredentials: boolean
  /** Whether there are two `Host`, `Content-Length` or `Transfer-Encoding` headers. */
  isMalformed: boolean
}

/**
 * Reads the raw headers in one pass. They are needed to detect duplicates, because Node's `headers` joins or drops
 * them.
 */
export function scanHeaders(raw: readonly string[]): RequestHeaders {
  const headers: RequestHeaders = {
    host: undefined,
    authorization: undefined,
    apiKey: undefined,
    requestId: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    forwardedFor: '',
    bytes: 0,
    hasAmbiguousCredentials: false,
    isMalformed: false,
  }
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    headers.bytes += name.length + value.length + 4
    switch (name.length) {
      case 4:
        if (!isNamed(name, 'host')) break
        if (headers.host !== undefined) headers.isMalformed = true
        headers.host = value
        break
      case 9:
        if (!isNamed(name, 'x-api-key')) break
        if (headers.apiKey !== undefined) headers.hasAmbiguousCredentials = true
        headers.apiKey = value
        break
      case 12:
        if (isNamed(name, 'x-request-id')) headers.requestId = value
        break
      case 13:
        if (!isNamed(name, 'authorization')) break
        if (headers.authorization !== undefined) headers.hasAmbiguousCredentials = true
        headers.authorization = value
        break
      case 14:
        if (!isNamed(name, 'content-length')) break
        if (headers.contentLength !== undefined) headers.isMalformed = true
        headers.contentLength = value
        break
      case 15:
        if (isNamed(name, 'x-forwarded-for')) {
          headers.forwardedFor = headers.forwardedFor === '' ? value : `${headers.forwardedFor},${value}`
        }
        break
      case 17:
        if (!isNamed(name, 'transfer-encoding')) break
        if (headers.transferEncoding !== undefined) headers.isMalformed = true
        headers.transferEncoding = value
        break
    }
  }
  return headers
}

function isNamed(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/**
 * Returns false if Node's parser accepts the framing but an upstream may read it differently (RFC 9112 §3.2, §6.1 and
 * §6.3).
 */
export function hasValidFraming(request: IncomingMessage, seen: RequestHeaders): boolean {
  if (request.httpVersionMajor !== 1) return false
  const isHttp10 = request.httpVersionMinor === 0
  if (seen.host === undefined && !isHttp10) return false
  if (seen.host !== undefined && seen.host !== '' && !isHost(seen.host)) return false
  if (seen.contentLength !== undefined && !isLength(seen.contentLength)) return false
  if (seen.transferEncoding === undefined) return true
  return !isHttp10 && seen.contentLength === undefined && seen.transferEncoding.toLowerCase() === 'chunked'
}

/** Returns false for an `Expect` other than `100-continue` (RFC 9110 §10.1.1). */
export function hasValidExpectation({ headers: { expect } }: IncomingMessage): boolean {
  return expect === undefined || expect.toLowerCase() === '100-continue'
}

/** Returns whether the value has only digits and is a number that JavaScript can represent exactly. */
function isLength(value: string): boolean {
  return /^\d+$/.test(value) && Number.isSafeInteger(Number(value))
}
