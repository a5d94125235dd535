// An endpoint of the admin API, and the request that it receives.
import type { FastifyRequest } from 'fastify'
import type { OperatorRole } from '../../config/sections/admin.ts'
import type { JsonObject } from '../../http/json-body.ts'
import type { OperationOfOperators, Refusals } from '../../openapi/operation.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { AuditChannel } from '../audit-store.ts'
import type { Operator } from '../operators.ts'
import type { Parameter } from './input.ts'

export interface AdminEndpoint {
  /** Has exactly one successful response. */
  readonly operation: OperationOfOperators
  /** Whether the audit has its refusals; by default not those of `GET`, but for a role that is not allowed. */
  readonly auditsRefusals?: boolean
  /** Of the successful response. */
  readonly headers?: Readonly<Record<string, string>>
  /** @returns the body of the successful response, if that has one @throws Refusal; StorageError */
  handle(call: AdminRequest): Promise<object | undefined>
}

export interface AdminRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, Parameter>>
  /** The role of the operator's token. */
  readonly may: OperatorRole
  /** Empty when the operation has no body. */
  readonly body: JsonObject
  /** Writes the audit record in the transaction of the change: no change is stored without one. */
  audited(change: AuditedChange): TransactionStep
  /** Writes the audit record of something that changes nothing, before it is answered. @throws StorageError */
  written(change: AuditedChange): Promise<void>
}

interface AuditedChange {
  readonly userId: number | undefined
  /** The changed fields with their new values; empty when the operation itself says it all. */
  readonly changes: Readonly<Record<string, unknown>>
  /** The values of these fields before the change, read in the same transaction. */
  readonly previous?: Readonly<Record<string, unknown>> | undefined
}

/** `peage users` sends this header with `cli`. The audit believes it from callers with a valid token. */
export const channelHeader = 'x-peage-channel'

/** A request whose token `onRequest` verified. */
export interface OperatorRequest extends FastifyRequest {
  operator?: Operator
  channel?: AuditChannel
}

/** Refusals of requests without an operator's token, of roles, and of cross-site requests from an operator's browser. */
export const admissionRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['admin_unauthorized'],
  403: ['admin_disabled', 'admin_unauthorized', 'admin_forbidden'],
}

/** The same, for endpoints that query the database. */
export const operatorRefusals: Refusals = { ...admissionRefusals, 503: ['service_unavailable'] }

/** The same, for changes that take no body: one with members is refused. */
export const bodilessRefusals: Refusals = {
  ...operatorRefusals,
  400: ['credentials_ambiguous', 'request_invalid'],
  413: ['body_too_large'],
}
