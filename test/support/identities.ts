// Inserts identities of users into the database. In production, sign-ins with an identity provider and user imports
// insert them.
import type { TestGateway } from './gateway.ts'

export const issuers = {
  google: 'https://accounts.google.com',
  keycloak: 'https://sso.example.com/realms/staff',
  /** The provider with this issuer has no client ID, so the provider counts as not configured. */
  unused: 'https://login.example.com',
  /** No provider in the configuration has this issuer. */
  gone: 'https://gone.example.com/Tenant/?v=2',
}

/** Settings of a gateway: two configured providers, and one without a client id. */
export const providers = `, providers: {
  google: { issuer: '${issuers.google}', client_id: a },
  keycloak: { issuer: '${issuers.keycloak}', client_id: b },
  unused: { issuer: '${issuers.unused}', client_id: '' } }`

/**
 * Stores one identity of a user for each of these providers. In the given order, `created_at` increases by one minute.
 * The `sub` contains the ID of the user.
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

/** Removes the password of the account. */
export const takePassword = (gateway: Pick<TestGateway, 'sql'>, { id }: { id: number }) =>
  gateway.sql("update users set password_hash = '!' where id = $1", [id])
