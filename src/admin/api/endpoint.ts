// What an endpoint of the admin API is, and what it is given.
import type { FastifyRequest } from 'fastify'
import type { JsonObject } from '../../http/json-body.ts'
import type { Operation, Refusals } from '../../openapi/operation.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { Parameter } from './query-params.ts'

export interface AdminEndpoint {
  /** It has one answer that is no refusal. */
  readonly operation: Operation
  /** @returns the body of that answer @throws Refusal; StorageError */
  handle(call: AdminRequest): Promise<object>
}

export interface AdminRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, Parameter>>
  /** Empty where the operation takes none. */
  readonly body: JsonObject
  /** Writes the call into the audit, in the transaction of what it changes: every change is stored with this. */
  audited(change: AuditedChange): TransactionStep
}

export interface AuditedChange {
  readonly userId: number | undefined
  /** The fields, and what to; empty where there is nothing to tell apart. */
  readonly changes: Readonly<Record<string, unknown>>
}

/** Whoever calls with the right token, which `onRequest` looked at. */
export interface OperatorRequest extends FastifyRequest {
  operator?: string
}

/** Whoever is no operator, or a page in an operator's browser. */
export const admissionRefusals: Refusals = {
  401: ['admin_unauthorized'],
  403: ['admin_disabled', 'admin_unauthorized'],
}

/** The same, of what asks the database. */
export const operatorRefusals: Refusals = { ...admissionRefusals, 503: ['service_unavailable'] }
