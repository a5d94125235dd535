// The header fields and trailers of an upstream's answer that a client receives (CONTRACT §6).

import { Refusal } from '../refusals/refusal.ts'
import { describeAnswerName, readAnswerName } from './answer-names.ts'

/** What a route, or CORS, changes in an upstream's answer. */
export interface AnswerRules {
  /** Names and values in turn. */
  readonly set: readonly string[]
  /** Names in lower case, those that are set among them. */
  readonly remove: ReadonlySet<string>
}

/**
 * @param raw names and values in turn, as undici gives them
 * @param requestId added where the upstream names none
 * @param mayTrail the client can be sent trailers: node:http refuses their announcement anywhere else
 * @throws Refusal 502 where the body has another coding than `chunked`: it would be passed on as if it had none
 */
export function answerFields(
  raw: readonly Buffer[],
  requestId: string,
  rules?: AnswerRules,
  mayTrail = false,
): string[] {
  const fields: string[] = []
  let named: Set<string> | undefined
  let via = ''
  let identified = false
  let isChunked = false
  let announced: string[] | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const { name, lower, isDropped } = readAnswerName(raw[i] as Buffer)
    if (isDropped) {
      if (lower === 'connection') named = options(text(raw[i + 1]), named)
      else if (lower === 'transfer-encoding') {
        if (isChunked || !isChunkedAlone(text(raw[i + 1]))) throw codedOtherwise()
        isChunked = true
      } else if (lower === 'trailer') announced = [...(announced ?? []), name, text(raw[i + 1])]
      continue
    }
    const value = text(raw[i + 1])
    if (lower === 'via') via = via === '' ? value : `${via}, ${value}`
    else if (!rules?.remove.has(lower)) fields.push(name, value)
    if (lower === 'x-request-id') identified = true
  }
  const kept = named === undefined ? fields : withoutNamed(fields, named)
  if (announced !== undefined && isChunked && mayTrail) kept.push(...announced)
  if (rules !== undefined) kept.push(...rules.set)
  if (!identified || named?.has('x-request-id')) kept.push('x-request-id', requestId)
  kept.push('via', via === '' ? '1.1 peage' : `${via}, 1.1 peage`)
  return kept
}

/** Trailers go through the same sieve as fields. */
export function answerTrailers(raw: readonly (string | Buffer)[], rules?: AnswerRules): [string, string][] {
  const trailers: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) {
    const { name, lower, isDropped } = describeAnswerName(text(raw[i]))
    if (!isDropped && !rules?.remove.has(lower)) trailers.push([name, text(raw[i + 1])])
  }
  return trailers
}

/**
 * undici has taken no coding off but this one, once (RFC 9112 §6.1): not even `identity`, which is gone since RFC 7230. Nor
 * this one where a tab comes behind it.
 */
function isChunkedAlone(value: string): boolean {
  return value === 'chunked' || /^chunked *$/i.test(value)
}

function codedOtherwise(): Refusal {
  const cause = new Error('the upstream’s answer has a transfer coding other than chunked')
  return new Refusal('upstream_unreachable', { cause })
}

/** What `Connection` names is hop by hop too; how the body is framed is not for it to say. */
function options(value: string, before: Set<string> | undefined): Set<string> | undefined {
  // Nearly always this one, which is dropped whether it is named or not.
  if (value === 'keep-alive') return before
  const named = before ?? new Set<string>()
  for (const option of value.toLowerCase().split(',')) named.add(option.trim())
  named.delete('content-length')
  return named
}

function withoutNamed(fields: string[], named: Set<string>): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!named.has(name.toLowerCase())) kept.push(name, fields[i + 1] as string)
  }
  return kept
}

/** Field bytes are kept as they are: Node writes latin1 back. */
function text(bytes: Buffer | string | undefined): string {
  return typeof bytes === 'string' ? bytes : (bytes as Buffer).toString('latin1')
}
