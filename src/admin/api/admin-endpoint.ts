// An endpoint of the admin API, what it needs, and the request that it receives.
import type { FastifyRequest } from 'fastify'
import type { AccountExportStore } from '../../accounts/account-export-store.ts'
import type { CodeIssueStore } from '../../accounts/codes/code-issue-store.ts'
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { OperatorRole } from '../../config/sections/admin.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import type { JsonObject } from '../../http/json-body.ts'
import type { ApiTokenStore } from '../../identity/api-tokens/api-token-store.ts'
import type { MailStore } from '../../mail/mail-store.ts'
import type { OperationOfOperators, Refusals } from '../../openapi/operation.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'
import type { Plan } from '../../users/user.ts'
import type { UserDirectory } from '../../users/user-directory.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { Alerts } from '../../webhooks/alerts/alerts.ts'
import type { DeliveryStore } from '../../webhooks/delivery/delivery-store.ts'
import type { WebhookStore } from '../../webhooks/webhook-store.ts'
import type { AuditChannel, AuditStore } from '../audit-store.ts'
import type { ConfigurationRecord } from '../configuration-record.ts'
import type { Health, WorkerHealth } from '../health.ts'
import type { Operator } from '../operators.ts'
import type { OverviewHistory } from '../overview.ts'
import type { UserDetailsStore } from '../user-details-store.ts'
import type { Parameter } from './input.ts'

export interface AdminEndpoint {
  /** Has exactly one successful response. */
  readonly operation: OperationOfOperators
  /** Whether the audit records every refusal. By default, of a `GET` it records only the refusal of a role. */
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
  /** The changed fields with their new values; empty if the operation changes no field. */
  readonly changes: Readonly<Record<string, unknown>>
  /** The values of these fields before the change, read in the same transaction. */
  readonly previous?: Readonly<Record<string, unknown>> | undefined
}

export interface ExplainQuestion {
  readonly request: { readonly method: string; readonly path: string }
  readonly host?: string
  readonly as:
    | 'anonymous'
    | { readonly plan: Plan; readonly verified?: boolean; readonly used_today?: number }
  /** A user in particular, with `as` by the record. */
  readonly user?: { readonly id: number; readonly isActive: boolean }
}

/** What the endpoints need. */
export interface AdminDependencies {
  users: UserStore
  userDirectory: UserDirectory
  userDetails: UserDetailsStore
  sessions: SessionStore
  apiTokens: ApiTokenStore
  webhooks: WebhookStore
  exports: AccountExportStore
  codeIssues: CodeIssueStore
  alerts: Alerts
  deliveries: Pick<DeliveryStore, 'list' | 'retryNow'>
  mails: Pick<MailStore, 'list'>
  audit: AuditStore
  /** The PHC string of a password. @throws Refusal `service_unavailable` while too many are hashed */
  hashPassword(password: string): Promise<string>
  /** How long a code is good; undefined where no mails can be sent. */
  resetTtlMs(): number | undefined
  /** Sends what was stored. */
  wakeMails(): void
  /** Resolves when the change is visible in this process. */
  changesVisible(): Promise<void>
  explain(question: ExplainQuestion): Promise<object>
  configuration: ConfigurationRecord
  /** The routes of the current configuration. */
  routes(): readonly RouteConfig[]
  /** The upstreams of the current configuration. */
  upstreamNames(): readonly string[]
  /** The status of every target, from whichever processes serve requests. */
  targetStatuses(): Promise<readonly TargetStatus[]>
  history: OverviewHistory
  health: Health
  /** Undefined where this process serves by itself. */
  workers: (() => Promise<WorkerHealth[]>) | undefined
  clock: Clock
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
