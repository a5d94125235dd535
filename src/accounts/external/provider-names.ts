// Converts between issuers and the names of providers in the configuration. Clients and operators use the names.
import type { ProviderConfig } from '../../config/sections/schema.ts'

type Providers = readonly Pick<ProviderConfig, 'name' | 'issuer'>[]

/**
 * Returns the identity with the name of its provider in the field `provider`. If no configured provider has the issuer,
 * the field contains the issuer.
 */
export function withProviderName<T extends { readonly issuer: string }>(
  providers: Providers,
  identity: T,
): { readonly provider: string } & T {
  return { provider: nameOfIssuer(providers, identity.issuer), ...identity }
}

function nameOfIssuer(providers: Providers, issuer: string): string {
  return providers.find(provider => provider.issuer === issuer)?.name ?? issuer
}

/** Returns the issuer of the provider with this name. Undefined if no configured provider has this name. */
export function issuerOfName(providers: Providers, name: string): string | undefined {
  return providers.find(provider => provider.name === name)?.issuer
}
