// Checks the identity providers in `auth.providers`, and the pages in `auth.return_urls`.
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { isLoopbackHttp } from '../formats/sign-in.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, diagnosticAtKey, type YamlSource } from '../yaml/yaml-source.ts'

const mostProviders = 20

interface DeclaredProvider {
  readonly name: string
  readonly pointer: string
  readonly keys: Readonly<Record<string, unknown>>
}

interface WrittenSignIn {
  readonly returnUrls: readonly { readonly pointer: string; readonly url: string }[]
  /** The providers with a client id. */
  readonly providers: readonly DeclaredProvider[]
}

function writtenSignIn(yaml: YamlSource, validation: Validation): WrittenSignIn {
  const { auth } = yaml.value as { auth?: { return_urls?: unknown; providers?: unknown } | null }
  const { return_urls: urls, providers } = auth ?? {}
  return {
    returnUrls: (Array.isArray(urls) ? urls : [])
      .map((url: unknown, index) => ({ url, pointer: appendToPointer('/auth/return_urls', index) }))
      .filter(
        (entry): entry is { url: string; pointer: string } =>
          typeof entry.url === 'string' && validation.isValid(entry.pointer),
      ),
    providers: Object.entries(isMapping(providers) ? providers : {})
      .map(([name, keys]) => ({
        name,
        pointer: appendToPointer('/auth/providers', name),
        keys: isMapping(keys) ? keys : {},
      }))
      .filter(({ keys }) => keys.client_id !== ''),
  }
}

export function checkProviders(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { returnUrls, providers } = writtenSignIn(yaml, validation)
  const { server } = yaml.value as { server?: { public_url?: unknown } | null }
  const diagnostics: Diagnostic[] = []
  if (returnUrls.length > 0 && server?.public_url === undefined) {
    const message = 'need server.public_url; set it to the origin where browsers reach the gateway'
    diagnostics.push(diagnosticAt(yaml, '/auth/return_urls', message))
  }
  const holders = new Map<unknown, string>()
  for (const [index, { name, pointer, keys }] of providers.entries()) {
    if (index === mostProviders) {
      const message = `is one provider too many; at most ${mostProviders} are allowed`
      diagnostics.push(diagnosticAtKey(yaml, pointer, message))
    }
    const issuer = appendToPointer(pointer, 'issuer')
    const holder = holders.get(keys.issuer)
    if (keys.issuer === '') {
      const message =
        'must be an https:// address such as https://accounts.google.com, because client_id is set'
      diagnostics.push(diagnosticAt(yaml, issuer, message))
    } else if (holder === undefined) holders.set(keys.issuer, name)
    else if (validation.isValid(issuer)) {
      const message = `is also the issuer of ${holder}; keep one of them, and add further client ids to its audiences`
      diagnostics.push(diagnosticAt(yaml, issuer, message))
    }
    const scopes = appendToPointer(pointer, 'scopes')
    if (Array.isArray(keys.scopes) && validation.isValid(scopes) && !keys.scopes.includes('openid'))
      diagnostics.push(diagnosticAt(yaml, scopes, 'must contain openid, as in [openid, email]'))
  }
  return diagnostics
}

export function warnOfProviders(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { returnUrls, providers } = writtenSignIn(yaml, validation)
  return [
    ...warnOfSecrets(yaml, providers),
    ...warnOfLoopback(yaml, returnUrls),
    ...(providers.length === 0 ? [] : warnOfMissingMail(yaml)),
  ]
}

function warnOfSecrets(yaml: YamlSource, providers: readonly DeclaredProvider[]): Diagnostic[] {
  return providers.flatMap(({ pointer, keys }) => {
    const secret = appendToPointer(pointer, 'client_secret')
    if (!keys.client_secret || yaml.interpolated.has(secret)) return []
    const message = 'is written into the file; use an environment variable such as ${CLIENT_SECRET}'
    return [diagnosticAt(yaml, secret, message)]
  })
}

function warnOfLoopback(yaml: YamlSource, urls: WrittenSignIn['returnUrls']): Diagnostic[] {
  const loopback = urls.filter(({ url }) => isLoopbackHttp(url))
  if (loopback.length === urls.length) return []
  const message =
    'is on loopback, but other pages use https; remove it in production, because any program on a user’s machine could receive the codes of this user'
  return loopback.map(({ pointer }) => diagnosticAt(yaml, pointer, message))
}

function warnOfMissingMail(yaml: YamlSource): Diagnostic[] {
  const { mail } = yaml.value as { mail?: { smtp?: unknown } | null }
  if (mail?.smtp) return []
  const message =
    'need mail.smtp; without mails, users without a password cannot set one or delete their account, and no user can change the email'
  return [diagnosticAtKey(yaml, '/auth/providers', message)]
}
