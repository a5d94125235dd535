// All endpoints of the admin API, and what they work on.
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { TargetStanding } from '../../upstream/targets/target-status.ts'
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

export interface AdminParts {
  /** Those that are served at the moment. */
  routes(): readonly RouteConfig[]
  /** Of every target, in whatever process serves. */
  standing(): Promise<readonly TargetStanding[]>
  users: Pick<UserStore, 'list' | 'findById' | 'update'>
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  alerts: Alerts
  deliveries: Pick<DeliveryStore, 'list'>
  audit: AuditStore
  /** Resolves when what was changed in the database by now is in force here. */
  inForce(): Promise<void>
  clock: Clock
}

export function createAdminEndpoints(parts: AdminParts): AdminEndpoint[] {
  return [
    createRouteListing(parts),
    ...createUserAdministration(parts),
    createAlertEndpoint(parts.alerts),
    createDeliveryLog(parts.deliveries),
    createAuditLog(parts.audit),
  ]
}
