// Opens the stores of API keys. The stores do not record changes, so a new key causes no notice.
import { createApiKeyStore } from '../../src/identity/api-keys/api-key-store.ts'
import { createApiTokenStore } from '../../src/identity/api-keys/api-token-store.ts'
import { createUserKeyStore } from '../../src/identity/api-keys/user-key-store.ts'
import type { Database } from '../../src/storage/database.ts'
import { createUserQueue } from '../../src/users/user-record-store.ts'

export type ApiKeyStores = ReturnType<typeof openApiKeys>

/** Returns the methods of all API key stores in one object. As in the program, the stores share one user queue. */
export function openApiKeys(database: Database) {
  const shared = { database, perUser: createUserQueue(), recordChanges: async () => {} }
  const { revoke: revokeApiToken, replace } = createApiTokenStore(shared)
  return { ...createApiKeyStore(database), ...createUserKeyStore(shared), replace, revokeApiToken }
}
