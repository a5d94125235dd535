// Describes an operation of the gateway: its request, its responses and its refusals.
import type { OperatorRole } from '../config/sections/admin.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import type { ObjectSchema, Schema } from '../schema/type.ts'

export type Operation = OperationOfUsers | OperationOfOperators

interface BaseOperation {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path. A segment that begins with `:`, for example `:id`, is a parameter. */
  readonly path: string
  /** The unique `operationId`, in camel case. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly params?: ObjectSchema
  readonly query?: ObjectSchema
  /** Whether HEAD is refused. Otherwise, an endpoint for GET also serves HEAD. */
  readonly refusesHead?: true
  /** The label of the operation in `peage_auth_total`, if it is not the path. */
  readonly metricLabel?: string
  /** The JSON body. On the client listener, the body is optional: a body that is not a JSON object counts as `{}`. */
  readonly body?: ObjectSchema
  /** The responses by status code. */
  readonly responses: Readonly<Record<number, DescribedResponse>>
  /** The refusals by status code, without the refusals that any request may get (`commonRefusals`). */
  readonly refusals: Refusals
}

interface OperationOfUsers extends BaseOperation {
  /** The allowed callers: anybody, or only users with an access token or an API key. */
  readonly caller: 'anybody' | 'user'
  /**
   * Whether a successful request ends sessions. With `auth.logout_ends_access`, the gateway then responds only after
   * all workers refuse the access tokens of these sessions.
   */
  readonly endsSessions?: true
  readonly isBodyOptional?: undefined
  readonly roles?: undefined
  readonly fieldsOf?: undefined
}

export interface OperationOfOperators extends BaseOperation {
  /** Only operators are allowed. */
  readonly caller: 'operator'
  /** Whether the body may be missing or empty. A missing or empty body counts as `{}`. */
  readonly isBodyOptional?: true
  readonly endsSessions?: undefined
  /** The roles that may call the operation, in addition to `all`. */
  readonly roles: readonly OperatorRole[]
  /** The body members that each role may send. A role that is not listed may send every member. */
  readonly fieldsOf?: Readonly<Partial<Record<OperatorRole, readonly string[]>>>
}

export interface DescribedResponse {
  readonly description: string
  /**
   * The schema of the JSON body; undefined if there is no JSON body. Members that the schema does not describe are
   * never sent.
   */
  readonly body?: Schema
  /** The media type of a body that is not JSON. */
  readonly mediaType?: string
  /**
   * The headers of this response, in addition to the headers of all responses. The keys are header names in lower case,
   * and the values are descriptions.
   */
  readonly headers?: Readonly<Record<string, string>>
}

export type Refusals = Readonly<Record<number, readonly RefusalCode[]>>

/** The refusals that any request may get, regardless of its operation. */
export const commonRefusals: readonly RefusalCode[] = ['request_invalid', 'headers_too_large', 'internal']

/** Merges several sets of refusals. The codes with the same status are combined, without duplicates. */
export function mergeRefusals(...parts: readonly Refusals[]): Refusals {
  const all: Record<number, RefusalCode[]> = {}
  for (const part of parts) {
    for (const [status, codes] of Object.entries(part)) {
      all[Number(status)] = [...new Set([...(all[Number(status)] ?? []), ...codes])]
    }
  }
  return all
}

/** Returns the status of the only successful response of an operation. */
export function successStatus({ responses }: Pick<Operation, 'responses'>): number {
  const [status = 200] = Object.keys(responses).map(Number)
  return status
}

/** Returns the response schemas by status code, as Fastify expects them in `schema.response`. */
export function responseSchemas({ responses }: Pick<Operation, 'responses'>): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(responses).flatMap(([status, { body }]) => (body === undefined ? [] : [[status, body]])),
  )
}
