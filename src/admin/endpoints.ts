// All endpoints of the admin API, and what they work on.
import type { SessionStore } from '../accounts/session-store.ts'
import type { UserStore } from '../accounts/user-store.ts'
import type { Clock } from '../clock.ts'
import type { RouteConfig } from '../config/schema.ts'
import type { TargetStanding } from '../upstream/standing.ts'
import type { Alerts } from '../webhooks/alerts.ts'
import type { DeliveryStore } from '../webhooks/delivery-store.ts'
import { createAlertEndpoint } from './alerts.ts'
import { createAuditLog } from './audit.ts'
import type { AuditStore } from './audit-store.ts'
import { createDeliveryLog } from './deliveries.ts'
import type { AdminEndpoint } from './endpoint.ts'
import { createRouteListing } from './routes.ts'
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
