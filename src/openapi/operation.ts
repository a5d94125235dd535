// One of the gateway's own operations, as described to callers; its responses are serialized by the description.
import type { OperatorRole } from '../config/sections/admin.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import type { ObjectSchema, Schema } from '../schema/type.ts'

export type Operation = OperationOfUsers | OperationOfOperators

interface BaseOperation {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `:id` is a parameter. */
  readonly path: string
  /** Unique, in camel case. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly params?: ObjectSchema
  readonly query?: ObjectSchema
  /** On the client listener the whole body is optional: one that is not a JSON object counts as `{}`. */
  readonly body?: ObjectSchema
  /** By status code. */
  readonly responses: Readonly<Record<number, DescribedResponse>>
  /** By status code. The refusals of any request (`commonRefusals`) are not repeated. */
  readonly refusals: Refusals
}

interface OperationOfUsers extends BaseOperation {
  /** Who may call: anybody, or a user (access token or API key). */
  readonly caller: 'anybody' | 'user'
  /** Whether a success ends sessions. The response then waits until their access tokens are refused. */
  readonly endsSessions?: true
  readonly roles?: undefined
  readonly fieldsOf?: undefined
}

export interface OperationOfOperators extends BaseOperation {
  /** Who may call: an operator (token). */
  readonly caller: 'operator'
  readonly endsSessions?: undefined
  /** The roles that may call, besides `all` (CONTRACT §13). */
  readonly roles: readonly OperatorRole[]
  /** The only members that the body may have from a bearer of this role; undefined: every member. */
  readonly fieldsOf?: Readonly<Partial<Record<OperatorRole, readonly string[]>>>
}

export interface DescribedResponse {
  readonly description: string
  /** Schema and serializer of the JSON body: nothing else is ever written. `undefined` if the body is not JSON. */
  readonly body?: Schema
  /** Of a body that is not JSON. */
  readonly mediaType?: string
  /** Names in lower case, besides the headers of every response. */
  readonly headers?: Readonly<Record<string, string>>
}

export type Refusals = Readonly<Record<number, readonly RefusalCode[]>>

/** What any request may be refused with, regardless of its operation. */
export const commonRefusals: readonly RefusalCode[] = ['request_invalid', 'headers_too_large', 'internal']

/** Combines the codes of each status, without duplicates. */
export function mergeRefusals(...parts: readonly Refusals[]): Refusals {
  const all: Record<number, RefusalCode[]> = {}
  for (const part of parts) {
    for (const [status, codes] of Object.entries(part)) {
      all[Number(status)] = [...new Set([...(all[Number(status)] ?? []), ...codes])]
    }
  }
  return all
}

/** The status of the one successful response that an operation has. */
export function successStatus({ responses }: Pick<Operation, 'responses'>): number {
  const [status = 200] = Object.keys(responses).map(Number)
  return status
}

/** In the form of Fastify's `schema.response`. */
export function responseSchemas({ responses }: Pick<Operation, 'responses'>): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(responses).flatMap(([status, { body }]) => (body === undefined ? [] : [[status, body]])),
  )
}
