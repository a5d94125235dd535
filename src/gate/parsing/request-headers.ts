// What the fields of a request say of it, and whether they can be read in one way only.
import type { IncomingMessage } from 'node:http'
import { isHost } from './request-target.ts'

/** The values of the fields that the gate decides by; `undefined` where absent. */
export interface Fields {
  host: string | undefined
  authorization: string | undefined
  apiKey: string | undefined
  requestId: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  forwardedFor: string
  /** All fields as they stood on the wire. */
  bytes: number
  /** Two `Authorization` or two `X-API-Key` fields. */
  ambiguous: boolean
  /** Two `Host` fields, or two of those that frame the body. */
  malformed: boolean
}

/** One walk over the raw fields: Node's own table joins or drops what was sent twice, which is what must be seen. */
export function readFields(raw: readonly string[]): Fields {
  const seen: Fields = {
    host: undefined,
    authorization: undefined,
    apiKey: undefined,
    requestId: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    forwardedFor: '',
    bytes: 0,
    ambiguous: false,
    malformed: false,
  }
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    seen.bytes += name.length + value.length + 4
    switch (name.length) {
      case 4:
        if (!named(name, 'host')) break
        if (seen.host !== undefined) seen.malformed = true
        seen.host = value
        break
      case 9:
        if (!named(name, 'x-api-key')) break
        if (seen.apiKey !== undefined) seen.ambiguous = true
        seen.apiKey = value
        break
      case 12:
        if (named(name, 'x-request-id')) seen.requestId = value
        break
      case 13:
        if (!named(name, 'authorization')) break
        if (seen.authorization !== undefined) seen.ambiguous = true
        seen.authorization = value
        break
      case 14:
        if (!named(name, 'content-length')) break
        if (seen.contentLength !== undefined) seen.malformed = true
        seen.contentLength = value
        break
      case 15:
        if (named(name, 'x-forwarded-for')) {
          seen.forwardedFor = seen.forwardedFor === '' ? value : `${seen.forwardedFor},${value}`
        }
        break
      case 17:
        if (!named(name, 'transfer-encoding')) break
        if (seen.transferEncoding !== undefined) seen.malformed = true
        seen.transferEncoding = value
        break
    }
  }
  return seen
}

function named(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/** What the parser lets through and an upstream may frame differently (RFC 9112 §3.2, §6.1, §6.3; RFC 9110 §10.1.1; CONTRACT §4). */
export function isWellFormed(request: IncomingMessage, seen: Fields): boolean {
  if (request.httpVersionMajor !== 1) return false
  const isOld = request.httpVersionMinor === 0
  if (seen.host === undefined && !isOld) return false
  if (seen.host !== undefined && seen.host !== '' && !isHost(seen.host)) return false
  const { expect } = request.headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return false
  if (seen.contentLength !== undefined && !isLength(seen.contentLength)) return false
  if (seen.transferEncoding === undefined) return true
  return !isOld && seen.contentLength === undefined && seen.transferEncoding.toLowerCase() === 'chunked'
}

/** Digits, and few enough that a number holds them exactly. */
function isLength(value: string): boolean {
  return /^\d+$/.test(value) && Number.isSafeInteger(Number(value))
}
