// Lists all endpoints of the admin API, with their dependencies.
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { Alerts } from '../../webhooks/alerts/alerts.ts'
import type { DeliveryStore } from '../../webhooks/delivery/delivery-store.ts'
import type { AuditStore } from '../audit-store.ts'
import { createAlertEndpoint } from './emit-alert.ts'
import type { AdminEndpoint } from './endpoint.ts'
import { createAuditLog } from './list-audit.ts'
import { createDeliveryLog } from './list-deliveries.ts'
import { createRouteListing } from './list-routes.ts'
import { createUserAdministration } from './users.ts'

export interface AdminDependencies {
  /** The routes of the current configuration. */
  routes(): readonly RouteConfig[]
  /** The status of every target, from whichever processes serve requests. */
  targetStatuses(): Promise<readonly TargetStatus[]>
  users: Pick<UserStore, 'list' | 'findById' | 'update'>
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  alerts: Alerts
  deliveries: Pick<DeliveryStore, 'list'>
  audit: AuditStore
  /** Resolves when every database change committed so far is visible in this process. */
  changesVisible(): Promise<void>
  clock: Clock
}

export function createAdminEndpoints(dependencies: AdminDependencies): AdminEndpoint[] {
  return [
    createRouteListing(dependencies),
    ...createUserAdministration(dependencies),
    createAlertEndpoint(dependencies.alerts),
    createDeliveryLog(dependencies.deliveries),
    createAuditLog(dependencies.audit),
  ]
}
