// Builds the OpenAPI description of all operations that the gateway itself serves, for clients and operators.

import { countHashes } from '../admin/api/count-hashes.ts'
import { emitAlert } from '../admin/api/emit-alert.ts'
import { explainRequest } from '../admin/api/explain-request.ts'
import { listAudit } from '../admin/api/list-audit.ts'
import { listDeliveries } from '../admin/api/list-deliveries.ts'
import { listMails } from '../admin/api/list-mails.ts'
import { listPlans } from '../admin/api/list-plans.ts'
import { listRoutes } from '../admin/api/list-routes.ts'
import { listUsers } from '../admin/api/list-users.ts'
import { retryDelivery } from '../admin/api/retry-delivery.ts'
import { showConfiguration } from '../admin/api/show-configuration.ts'
import { showOverview } from '../admin/api/show-overview.ts'
import { userOperations as administeredUsers } from '../admin/api/users.openapi.ts'
import { consoleOperations } from '../admin/console/session.openapi.ts'
import { documentation } from '../admin/documentation.ts'
import { probes } from '../admin/probes.openapi.ts'
import { accountOperations } from '../endpoints/account.ts'
import { authOperations } from '../endpoints/auth.ts'
import { emailOperations } from '../endpoints/email.ts'
import { externalOperations } from '../endpoints/external.ts'
import { identityOperations } from '../endpoints/identities.ts'
import { showKeys } from '../endpoints/jwks.ts'
import { keyOperations } from '../endpoints/keys.ts'
import { sessionOperations } from '../endpoints/own-sessions.ts'
import { passwordOperations } from '../endpoints/password.ts'
import { resetOperations } from '../endpoints/reset.ts'
import { upgradeOperations } from '../endpoints/upgrade.ts'
import { usageOperations } from '../endpoints/usage.ts'
import { userOperations } from '../endpoints/user.ts'
import { describeOperations, type OperationGroup } from '../openapi/document.ts'

export const operationGroups: readonly OperationGroup[] = [
  {
    name: 'Accounts and sessions',
    description: 'Registration, login, logout, sessions, account data, and identities at other providers.',
    listener: 'clients',
    operations: [
      ...Object.values(authOperations),
      ...Object.values(externalOperations),
      ...Object.values(sessionOperations),
      ...Object.values(accountOperations),
      ...Object.values(identityOperations),
    ],
  },
  {
    name: 'Password and email',
    description: 'Changes to the password or email, with the current password or with a code sent by mail.',
    listener: 'clients',
    operations: [
      ...Object.values(passwordOperations),
      ...Object.values(resetOperations),
      ...Object.values(emailOperations),
    ],
  },
  {
    name: 'API keys and webhooks',
    description: 'API keys and alert webhooks, for users whose plan has them.',
    listener: 'clients',
    operations: [...Object.values(keyOperations), ...Object.values(userOperations)],
  },
  {
    name: 'Subscription',
    description: 'Current plan with its limits, and payment for a higher plan.',
    listener: 'clients',
    operations: [...Object.values(usageOperations), ...Object.values(upgradeOperations)],
  },
  {
    name: 'Keys',
    description: 'Public keys, for services that verify tokens themselves.',
    listener: 'clients',
    operations: [showKeys],
  },
  {
    name: 'Administration',
    description: 'For operators, on the admin listener. Cross-site requests from browsers are refused.',
    listener: 'operators',
    operations: [
      listRoutes,
      listPlans,
      countHashes,
      listUsers,
      ...Object.values(administeredUsers),
      emitAlert,
      listDeliveries,
      retryDelivery,
      listMails,
      listAudit,
      showConfiguration,
      explainRequest,
      showOverview,
    ],
  },
  {
    name: 'Console',
    description: 'Login and logout of operators in the console, on the admin listener.',
    listener: 'operators',
    operations: Object.values(consoleOperations),
  },
  {
    name: 'Health and metrics',
    description: 'For probes and Prometheus, on the admin listener.',
    listener: 'operators',
    operations: Object.values(probes),
  },
  {
    name: 'Documentation',
    description: 'This document, on the admin listener.',
    listener: 'operators',
    operations: Object.values(documentation),
  },
]

export function createDocumentation(version: string): string {
  return `${JSON.stringify(describeOperations(version, operationGroups), null, 2)}\n`
}
