// The endpoints that list and remove the user's own identities at other providers.
import type { IdentityStore } from '../accounts/external/identity-store.ts'
import { issuerOfName, withProviderName } from '../accounts/external/provider-names.ts'
import type { ProviderConfig } from '../config/sections/schema.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import { authPrefix } from './auth.ts'
import { type GuardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { RequireLiveCredential, SignedInEndpoint } from './signed-in.ts'

const { record, text } = terms
const path = `${authPrefix}/identities`

export const identityOperations = {
  list: {
    method: 'GET',
    path,
    id: 'listOwnIdentities',
    summary: 'Lists the current user’s identities at other providers, oldest first',
    caller: 'user',
    responses: {
      200: {
        description: 'The identities.',
        body: record({
          identities: Type.Array(
            record(terms.identity, {
              title: 'OwnIdentity',
              description: 'An account at another identity provider, with which the user signs in.',
            }),
          ),
        }),
      },
    },
    refusals: guardRefusals,
  },
  remove: {
    method: 'DELETE',
    path: `${path}/:id`,
    id: 'removeOwnIdentity',
    summary: 'Removes one identity of the current user',
    description: 'No session ends.',
    caller: 'user',
    params: record({ id: text('The name of the provider.') }),
    responses: { 200: { description: 'The identity is removed.', body: terms.message } },
    refusals: mergeRefusals(guardRefusals, { 404: ['provider_unknown'], 409: ['last_sign_in_method'] }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  identities: Pick<IdentityStore, 'list' | 'removeOwn'>
  /** `auth.providers`. */
  providers: readonly Pick<ProviderConfig, 'name' | 'issuer'>[]
  requireLiveCredential: RequireLiveCredential
  signedIn: SignedInEndpoint
}

/** Each endpoint throws StorageError when the store fails. */
export function createIdentityEndpoints({
  identities,
  providers,
  requireLiveCredential,
  signedIn,
}: Dependencies): GuardedEndpoint[] {
  return [
    signedIn(identityOperations.list, async ({ user }) => {
      const found = await identities.list(user.id)
      const listed = found.map(identity => {
        const { issuer: _issuer, sub: _sub, ...rest } = withProviderName(providers, identity)
        return rest
      })
      return { status: 200, body: { identities: listed } }
    }),

    signedIn(identityOperations.remove, async request => {
      const { user, parameter } = request
      const issuer = issuerOfName(providers, parameter)
      if (issuer === undefined) throw new Refusal('provider_unknown')
      const configured = providers.map(provider => provider.issuer)
      const outcome = await identities.removeOwn(user.id, { issuer, configured }, tx =>
        requireLiveCredential(request, tx),
      )
      if (outcome === 'user_gone') throw new Refusal('user_not_found')
      if (outcome === 'unknown') throw new Refusal('provider_unknown')
      if (outcome === 'last') throw new Refusal('last_sign_in_method')
      return { status: 200, body: { message: messages.identityRemoved } }
    }),
  ]
}
