// Defines the endpoints of the admin API, their dependencies, and the requests that they receive.
import type { FastifyRequest } from 'fastify'
import type { AccountExportStore } from '../../accounts/account-export-store.ts'
import type { CodeIssueStore } from '../../accounts/codes/code-issue-store.ts'
import type { IdentityStore } from '../../accounts/external/identity-store.ts'
import type { HashCountStore } from '../../accounts/hashes/hash-count-store.ts'
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { Plans } from '../../config/plans.ts'
import type { OperatorRole } from '../../config/sections/admin.ts'
import type { ProviderConfig, RouteConfig } from '../../config/sections/schema.ts'
import type { JsonObject } from '../../http/json-body.ts'
import type { ApiTokenStore } from '../../identity/api-keys/api-token-store.ts'
import type { UserKeyStore } from '../../identity/api-keys/user-key-store.ts'
import type { MailStore } from '../../mail/mail-store.ts'
import type { OperationOfOperators, Refusals } from '../../openapi/operation.ts'
import type { Language } from '../../refusals/catalog.ts'
import type { TransactionStep } from '../../storage/database.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'
import type { QuotaRecordStore } from '../../usage/quota-record-store.ts'
import type { QuotaUsage } from '../../usage/quota-usage.ts'
import type { PlanStore } from '../../users/plan-store.ts'
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
  /** The operation must have exactly one successful response. */
  readonly operation: OperationOfOperators
  /**
   * Whether the audit records every refusal. The default is false for `GET`, and true for other methods. If false,
   * the only recorded refusals are calls that the role of the operator does not allow.
   */
  readonly auditsRefusals?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** @returns undefined if the successful response has no body @throws Refusal; StorageError */
  handle(call: AdminRequest): Promise<object | undefined>
}

export interface AdminRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, Parameter>>
  readonly may: OperatorRole
  /** The body of the request. An empty object if the operation has no body. */
  readonly body: JsonObject
  /**
   * Returns the step that writes the audit record in the transaction of the change, so that every stored change has a
   * record.
   */
  audited(change: AuditedChange): TransactionStep
  /**
   * Writes the audit record of an operation that changes nothing. Call it before the response is sent.
   * @throws StorageError
   */
  written(change: AuditedChange): Promise<void>
}

interface AuditedChange {
  readonly userId: number | undefined
  /** The changed fields with their new values. Empty if the operation changes no field. */
  readonly changes: Readonly<Record<string, unknown>>
  /** The values of the changed fields before the change, read in the same transaction. */
  readonly previous?: Readonly<Record<string, unknown>> | undefined
}

export interface ExplainQuestion {
  readonly request: { readonly method: string; readonly path: string }
  readonly host?: string
  readonly as:
    | 'anonymous'
    | {
        readonly plan: Plan
        readonly verified?: boolean
        readonly used_today?: number
        readonly used?: number
        readonly key?: true
        readonly scopes?: string[]
      }
  /**
   * The stored user to simulate. If there is one, `as` contains the plan, the email verification and today's uses of
   * this user.
   */
  readonly user?: {
    readonly id: number
    readonly isActive: boolean
    readonly usage: readonly Pick<QuotaUsage, 'name' | 'used'>[]
  }
}

export interface AdminDependencies {
  /** Returns `server.language` of the active configuration. */
  language(): Language
  users: UserStore
  userDirectory: UserDirectory
  userDetails: UserDetailsStore
  sessions: SessionStore
  apiTokens: ApiTokenStore
  userKeys: Pick<UserKeyStore, 'listNewest' | 'revoke' | 'revokeAll'>
  identities: Pick<IdentityStore, 'list' | 'remove'>
  webhooks: WebhookStore
  exports: AccountExportStore
  quotaRecords: QuotaRecordStore
  codeIssues: CodeIssueStore
  alerts: Alerts
  deliveries: Pick<DeliveryStore, 'list' | 'retryNow'>
  mails: Pick<MailStore, 'list'>
  audit: AuditStore
  /**
   * Returns the hash of the password as a PHC string.
   * @throws Refusal `service_unavailable` if the hashing queue is full
   */
  hashPassword(password: string): Promise<string>
  /** The lifetime of a reset code in milliseconds. Undefined if no mails can be sent. */
  resetTtlMs(): number | undefined
  wakeMails(): void
  /** Resolves when all changes stored so far are visible in the processes that serve requests. */
  changesVisible(): Promise<void>
  explain(question: ExplainQuestion): Promise<object>
  configuration: ConfigurationRecord
  /** The plans of the active configuration. */
  plans(): Plans
  /** The identity providers of the active configuration. */
  providers(): readonly ProviderConfig[]
  planStore: Pick<PlanStore, 'count'>
  hashCounts: HashCountStore
  routes(): readonly RouteConfig[]
  upstreamNames(): readonly string[]
  /** The status of every target, collected from the processes that serve requests. */
  targetStatuses(): Promise<readonly TargetStatus[]>
  history: OverviewHistory
  health: Health
  /** Returns the health of each worker. Undefined if this process serves requests itself. */
  workers: (() => Promise<WorkerHealth[]>) | undefined
  clock: Clock
}

/** `peage users` sends this header with the value `cli`. The audit records this value only if the token is valid. */
export const channelHeader = 'x-peage-channel'

/** A request of an operator. The hook `onRequest` has verified the token and set both fields. */
export interface OperatorRequest extends FastifyRequest {
  operator?: Operator
  channel?: AuditChannel
}

/**
 * The refusals because of a wrong token, a role that is not allowed, or a cross-site request from an operator's
 * browser.
 */
export const admissionRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['admin_unauthorized'],
  403: ['admin_disabled', 'admin_unauthorized', 'admin_forbidden'],
}

/** The refusals in `admissionRefusals`, and the refusal while the database is unavailable. */
export const operatorRefusals: Refusals = { ...admissionRefusals, 503: ['service_unavailable'] }

/**
 * The refusals of changes whose request has no body. An empty JSON object is also accepted. An object with any member
 * is refused.
 */
export const bodilessRefusals: Refusals = {
  ...operatorRefusals,
  400: ['credentials_ambiguous', 'request_invalid'],
  413: ['body_too_large'],
}
