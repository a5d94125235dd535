// Reads the attack corpus. Other files in this folder contain more attacks.
import { readFileSync } from 'node:fs'

export interface PathAttack {
  id: string
  class: string
  raw_target: string
  allowed_status: number[]
  note: string
  raw_target_note?: string
}

export interface HeaderAttack {
  id: string
  desc: string
  lines: string[]
  auth: 'both' | 'none' | 'valid' | 'special'
  expect: string
}

export interface Expectation {
  status?: number | number[]
  body?: object
  keys?: string[]
  token_type?: string
  any_of?: Expectation[]
  invariant?: string
  note?: string
}

export interface BodyAttack {
  id: string
  desc: string
  endpoint: string
  method: string
  content_type: string
  headers: Record<string, string>
  body?: string
  body_base64?: string
  expect: Expectation
  precondition?: string
}

export interface RawAttack {
  id: string
  desc: string
  raw: string
  expect: ('rejected_4xx' | 'connection_closed' | 'forwarded_safely')[]
  note: string
}

export interface WebhookAttack {
  id: string
  url: unknown
  expect: 'accept' | 'reject'
  /**
   * The step at which the gateway refuses the URL. `save`: when the URL is saved. `delivery`: when something is
   * delivered to the URL.
   */
  stage: 'save' | 'delivery'
  why: string
}

interface Corpus {
  protected_prefix: string
  paths: PathAttack[]
  headers: HeaderAttack[]
  bodies: BodyAttack[]
  webhook_urls: WebhookAttack[]
  raw_requests: RawAttack[]
}

export const corpus = JSON.parse(
  readFileSync(new URL('corpus/attacks.json', import.meta.url), 'utf8'),
) as Corpus

/** The path prefix of the routes that require a credential. */
export const guarded = corpus.protected_prefix

/** Replaces `@x65536@` with 65,536 times `A`, and `AAAA…(×100)` with 100 times `AAAA`. */
export function expand(text: string): string {
  return text
    .replace(/@x(\d+)@/g, (_, count: string) => 'A'.repeat(Number(count)))
    .replace(/(A+)…\(×(\d+)\)/, (_, run: string, times: string) => run.repeat(Number(times)))
}
