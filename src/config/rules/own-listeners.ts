// Warns of a target that is a listener of this gateway. A request would loop through the gateway until no connection is
// free.
import ipaddr from 'ipaddr.js'
import type { Diagnostic } from '../diagnostics.ts'
import type { ListenAddress } from '../formats/addresses.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { type DeclaredUpstream, validTargets } from './declarations.ts'
import { everyAddress, readListeners } from './server-rules.ts'

export function warnOfOwnListeners(
  yaml: YamlSource,
  validation: Validation,
  upstreams: readonly DeclaredUpstream[],
): Diagnostic[] {
  const { clients, operators } = readListeners(yaml, validation)
  const targets = upstreams.flatMap(upstream => validTargets(upstream, validation))
  return targets.flatMap(({ pointer, origin }) => {
    if (clients !== undefined && leadsTo(origin, clients)) {
      const message = 'is the gateway itself (server.listen), so each request would loop'
      return [diagnosticAt(yaml, pointer, `${message}; use the address of the service`)]
    }
    if (operators !== undefined && leadsTo(origin, operators)) {
      const message = "is the gateway's admin listener (admin.listen)"
      return [diagnosticAt(yaml, pointer, `${message}; use the address of the service`)]
    }
    return []
  })
}

/**
 * Whether the target is the listener. The network interfaces of this machine are ignored, so that the result is the
 * same on every machine.
 */
function leadsTo(origin: string, { host, port }: ListenAddress): boolean {
  const url = new URL(origin)
  const targetPort = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (port === 0 || port !== targetPort) return false
  const target = url.hostname.replace(/^\[|\]$/g, '')
  // A connection to the unspecified address (0.0.0.0 or ::) goes to loopback.
  const dialled = everyAddress.has(target) ? [target === '::' ? '::1' : '127.0.0.1'] : addressesOf(target)
  const listening = addressesOf(host)
  return dialled.some(address =>
    everyAddress.has(host) ? isLoopback(address, host) : listening.includes(address),
  )
}

/**
 * For `localhost`, returns both of its IP addresses. For an IP address, returns its canonical form. For any other name,
 * returns the name in lower case.
 */
function addressesOf(host: string): string[] {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']
  return [ipaddr.isValid(name) ? ipaddr.process(name).toString() : name]
}

/** @param listenedAt the address of the listener: `0.0.0.0` for IPv4 only, or `::` for IPv4 and IPv6 */
function isLoopback(address: string, listenedAt: string): boolean {
  return /^127(\.\d+){3}$/.test(address) || (address === '::1' && listenedAt === '::')
}
