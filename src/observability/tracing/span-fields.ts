// Builds the names and attributes of the spans of requests, according to OpenTelemetry's conventions for HTTP. No
// attribute contains a secret. There are few different names.
import type { IncomingMessage } from 'node:http'
import type { Attributes } from '@opentelemetry/api'
import { redactPath } from '../logger.ts'
import { knownMethods } from '../metrics/requests.ts'
import type { ReceivedRequest } from './tracing.ts'

export function spanName(method: string, template: string | undefined): string {
  const verb = knownMethods.has(method) ? method : 'HTTP'
  return template === undefined ? verb : `${verb} ${template}`
}

export function methodFields(method: string): Attributes {
  return knownMethods.has(method)
    ? { 'http.request.method': method }
    : { 'http.request.method': '_OTHER', 'http.request.method_original': method }
}

export function receivedFields(
  request: IncomingMessage,
  { requestId, url, client, host, template, route }: ReceivedRequest,
): Attributes {
  const [, name, port] = authorityPattern.exec(host) ?? []
  return {
    'url.scheme': 'encrypted' in request.socket ? 'https' : 'http',
    'url.path': redactPath(url),
    'client.address': client,
    'network.protocol.version': request.httpVersion,
    'peage.request_id': requestId,
    ...(template === undefined ? {} : { 'http.route': template }),
    ...(route === undefined ? {} : { 'peage.route': route }),
    ...(name ? { 'server.address': name } : {}),
    ...(port ? { 'server.port': Number(port) } : {}),
  }
}

/**
 * Matches a host with an optional port. The host is a name of up to 253 characters (RFC 1035 §2.3.4) or an address. The
 * port has up to five digits. The lengths are limited, because the collector rejects a batch if a number is too large
 * for OTLP or a text is too long. The whole batch is then lost, including the spans of other requests.
 */
const authorityPattern = /^(\[[^\]]{2,45}\]|[^:]{1,253})(?::(\d{1,5}))?$/

/**
 * Returns the `error.type` of a failure: the code of a refusal, a SQLSTATE, or a code of Node. For an error without a
 * code, returns its class.
 */
export function errorType(thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown
  const { code } = thrown as { code?: unknown }
  return typeof code === 'string' ? code : thrown.name
}
