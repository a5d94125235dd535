// Names the provider of an identity. Clients and operators see the name in the configuration instead of the issuer.
import type { ProviderConfig } from '../../config/sections/schema.ts'

type Providers = readonly Pick<ProviderConfig, 'name' | 'issuer'>[]

/** Puts the name of the provider before an identity. If no configured provider has the issuer, the name is the issuer. */
export function withProviderName<T extends { readonly issuer: string }>(
  providers: Providers,
  identity: T,
): { readonly provider: string } & T {
  return { provider: nameOfIssuer(providers, identity.issuer), ...identity }
}

function nameOfIssuer(providers: Providers, issuer: string): string {
  return providers.find(provider => provider.issuer === issuer)?.name ?? issuer
}

/** Returns the issuer of the provider with this name. Undefined if no configured provider has it. */
export function issuerOfName(providers: Providers, name: string): string | undefined {
  return providers.find(provider => provider.name === name)?.issuer
}
