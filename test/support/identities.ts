// Inserts identities of users, as a sign-in with another identity provider does.
import type { TestGateway } from './gateway.ts'

export const issuers = {
  google: 'https://accounts.google.com',
  keycloak: 'https://sso.example.com/realms/staff',
  /** Its provider has no client id, so it counts as not configured. */
  unused: 'https://login.example.com',
  /** No provider has this issuer. */
  gone: 'https://gone.example.com/Tenant/?v=2',
}

/** Settings of a gateway: two configured providers, and one without a client id. */
export const providers = `, providers: {
  google: { issuer: '${issuers.google}', client_id: a },
  keycloak: { issuer: '${issuers.keycloak}', client_id: b },
  unused: { issuer: '${issuers.unused}', client_id: '' } }`

/**
 * Stores identities of a user at these providers. Each identity has its own `created_at`, in the given order, and a
 * `sub` that contains the id of the user.
 */
export async function giveIdentities(
  gateway: Pick<TestGateway, 'sql'>,
  { id }: { id: number },
  ...at: readonly (keyof typeof issuers)[]
): Promise<void> {
  await gateway.sql(
    `insert into identities (issuer, sub, user_id, email, created_at)
     select issuer, 'sub of ' || $1::bigint, $1::bigint, 'me@provider.example',
            timestamptz '2026-01-02T03:04:00Z' + n * interval '1 minute'
       from unnest($2::text[]) with ordinality as given (issuer, n)`,
    [id, at.map(name => issuers[name])],
  )
}

/** Returns the issuers of a user's identities, sorted. */
export async function issuersOf(
  gateway: Pick<TestGateway, 'sql'>,
  { id }: { id: number },
): Promise<string[]> {
  const rows = await gateway.sql<{ issuer: string }>('select issuer from identities where user_id = $1', [id])
  return rows.map(({ issuer }) => issuer).sort()
}

/** Makes the account one without a password. */
export const takePassword = (gateway: Pick<TestGateway, 'sql'>, { id }: { id: number }) =>
  gateway.sql("update users set password_hash = '!' where id = $1", [id])
