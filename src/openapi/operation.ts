// What one operation of ours is to whoever calls it: what it is described by, and what its answers are written by.
import type { TObject, TProperties, TSchema } from 'typebox'
import type { RefusalCode } from '../refusals/catalog.ts'

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `:id` stands for a parameter. */
  readonly path: string
  /** In camel case, unique. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  /** Who may call: anybody, a user (access token or API key), an operator (a token), or one who reads in a browser. */
  readonly caller: 'anybody' | 'user' | 'operator' | 'reader'
  readonly params?: TObject<TProperties>
  readonly query?: TObject<TProperties>
  /** Of clients' requests all of it may be left out: there a body that is none counts as `{}`. */
  readonly body?: TObject<TProperties>
  /** By status. */
  readonly responses: Readonly<Record<number, DescribedResponse>>
  /** By status. What may happen to any request (`commonRefusals`) is not repeated. */
  readonly refusals: Refusals
}

export interface DescribedResponse {
  readonly description: string
  /** Of the JSON body: it is written by this, so that nothing else is ever in it. Nothing where there is no JSON. */
  readonly body?: TSchema
  /** Where the body is no JSON. */
  readonly mediaType?: string
  /** Header fields in lower case, beside those that every answer carries. */
  readonly headers?: Readonly<Record<string, string>>
}

export type Refusals = Readonly<Record<number, readonly RefusalCode[]>>

/** What any request may be refused with, whichever operation it is for. */
export const commonRefusals: readonly RefusalCode[] = ['request_invalid', 'headers_too_large', 'internal']

/** One after the other, each status once. */
export function mergeRefusals(...parts: readonly Refusals[]): Refusals {
  const all: Record<number, RefusalCode[]> = {}
  for (const part of parts) {
    for (const [status, codes] of Object.entries(part)) {
      all[Number(status)] = [...new Set([...(all[Number(status)] ?? []), ...codes])]
    }
  }
  return all
}

/** For Fastify's `schema.response`. */
export function responseSchemas({ responses }: Pick<Operation, 'responses'>): Record<string, TSchema> {
  return Object.fromEntries(
    Object.entries(responses).flatMap(([status, { body }]) => (body === undefined ? [] : [[status, body]])),
  )
}
