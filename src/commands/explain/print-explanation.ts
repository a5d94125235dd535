// Formats an explanation as aligned text or as JSON.
import type { Explanation, GuardOutcome } from '../../explain/explain.ts'
import { toDocument } from '../../explain/explain.ts'
import type { HeaderDiff } from '../../explain/header-diff.ts'

export function explanationAsJson(explanation: Explanation): string {
  return `${JSON.stringify(toDocument(explanation), null, 2)}\n`
}

export function explanationAsText(explanation: Explanation): string {
  const { request, route, guards, upstream, headers } = explanation
  const { method, path, host, as, usedToday, used, verified, key, user } = request
  const who = user === undefined ? '' : `, user ${user.id}${user.isActive ? '' : ' (inactive)'}`
  const daily = as !== 'anonymous' && usedToday > 0 ? `, ${usedToday} used today` : ''
  const ofQuota = as !== 'anonymous' && used > 0 ? `, ${used} used of the quota` : ''
  const unverified = as !== 'anonymous' && !verified ? ', email not verified' : ''
  const withKey = key === undefined ? '' : `, ${keyAsText(key.scopes)}`
  const lines = [
    `${method} ${path}  at ${host}, as ${as}${who}${daily}${ofQuota}${unverified}${withKey}`,
    '',
    ...rows('route', [route ?? 'none']),
    ...rows('guards', guards.map(guardAsText)),
    ...rows('response', [outcomeOf(explanation)]),
  ]
  if (upstream !== null) {
    const others = upstream.urls.length - 1
    const more =
      others === 0 ? '' : ` (or ${others === 1 ? 'the other target' : `one of ${others} other targets`})`
    lines.push(...rows('upstream', [`${upstream.name}  ${upstream.url}${more}`]))
    lines.push(...rows('request headers', changesAsText(headers.request)))
  }
  lines.push(...rows('response headers', changesAsText(headers.response)))
  return `${lines.join('\n')}\n`
}

/** @param scopes the scopes of the key; null if the key is not limited to scopes */
export function keyAsText(scopes: readonly string[] | null): string {
  return scopes === null ? 'API key' : `API key with scopes ${scopes.join(' ') || '(none)'}`
}

function guardAsText({ guard, outcome, status, error }: GuardOutcome): string {
  const refusal = outcome === 'refuse' ? `  ${status} ${error}` : ''
  return `${guard.padEnd(12)}  ${outcome}${refusal}`
}

function outcomeOf({ refusal, status, own, upstream }: Explanation): string {
  if (refusal !== null) return `${refusal.status} ${refusal.code}: ${refusal.sentence}`
  if (status !== null) return `${status} to the proxy that asks (server.forward_auth)`
  if (own !== null) return `from the gateway endpoint ${own}`
  return `from the upstream ${upstream?.name}`
}

function changesAsText({ set, remove }: HeaderDiff): string[] {
  return [
    ...Object.entries(set).map(([name, value]) => `+ ${name}: ${value}`),
    ...remove.map(name => `- ${name}`),
  ]
}

function rows(title: string, texts: readonly string[]): string[] {
  return texts.map((text, index) => `${(index === 0 ? title : '').padEnd(16)} ${text}`)
}
