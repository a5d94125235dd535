// Types for the parts of oidc-provider that the tests use. The package has no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: { login: { accountId: string } } | { error: string },
      options: { mergeWithLastSubmission: boolean },
    ): Promise<void>
  }

  /** The part of a Koa context that the hooks of the configuration read. */
  export interface Context {
    body: unknown
    readonly oidc: {
      readonly provider: { readonly Grant: GrantModel }
      readonly client: { readonly clientId: string }
      readonly session: { readonly accountId: string; grantIdFor(clientId: string): string | undefined }
    }
  }

  export interface Grant {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }

  export interface GrantModel {
    new (owner: { clientId: string; accountId: string }): Grant
    find(id: string): Promise<Grant | undefined>
  }
}
