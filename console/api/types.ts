// Declares the responses of the admin API, from the server's own types.
import type { explainRequest } from '../../src/admin/api/explain-request.ts'
import type { AuditedAction, listAudit } from '../../src/admin/api/list-audit.ts'
import type { listDeliveries } from '../../src/admin/api/list-deliveries.ts'
import type { listMails } from '../../src/admin/api/list-mails.ts'
import type { listPlans } from '../../src/admin/api/list-plans.ts'
import type { listRoutes } from '../../src/admin/api/list-routes.ts'
import type { listUsers } from '../../src/admin/api/list-users.ts'
import type { showConfiguration } from '../../src/admin/api/show-configuration.ts'
import type { showOverview } from '../../src/admin/api/show-overview.ts'
import type { userOperations } from '../../src/admin/api/users.openapi.ts'
import type { consoleOperations } from '../../src/admin/console/session.openapi.ts'
import type { user } from '../../src/openapi/schema-builders.ts'
import type { Written } from '../../src/schema/type.ts'

export type { AuditedAction }

type Answer<Of> = Of extends { responses: { 200: { body: infer Body } } } ? Sent<Written<Body>> : never

/** The type of a value after it was sent as JSON. A date is then a string. */
type Sent<Of> = Of extends Date ? string : Of extends object ? { [Key in keyof Of]: Sent<Of[Key]> } : Of

export type Session = Answer<(typeof consoleOperations)['show']>
export type Role = Session['may']
export type Routes = Answer<typeof listRoutes>
export type Route = Routes['routes'][number]
export type Upstream = Route['upstream']
export type Target = NonNullable<Upstream>['targets'][number]
export type Audit = Answer<typeof listAudit>
export type Deliveries = Answer<typeof listDeliveries>
export type Delivery = Deliveries['deliveries'][number]
export type Mails = Answer<typeof listMails>
export type Users = Answer<typeof listUsers>
export type UserDetails = Answer<(typeof userOperations)['show']>
export type ApiKey = NonNullable<UserDetails['api_keys']>[number]
export type Identity = NonNullable<UserDetails['identities']>[number]
export type Quota = UserDetails['usage'][number]
export type Plans = Answer<typeof listPlans>
export type User = Sent<Written<typeof user>>

export type Status = 'ok' | 'degraded' | 'down'
export type Series = readonly (number | null)[]
export type Overview = Answer<typeof showOverview>

export type Explanation = Answer<typeof explainRequest>
export type Configuration = Answer<typeof showConfiguration>
