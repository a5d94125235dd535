// Parses the questions of forward auth (`server.forward_auth`). In a question, a proxy asks about the request of a
// client, which it forwards itself. See docs/forward-auth.md.
import { type IncomingHttpHeaders, type IncomingMessage, METHODS } from 'node:http'
import { canonicalName, identityNames } from '../../config/formats/header-names.ts'
import type { Config } from '../../config/sections/schema.ts'
import { createNetworks, createTrustedProxies } from '../../http/client-address.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { parseRequestHead, type RequestHead, refuseMessage } from './request-head.ts'
import { isHost, parseRequestTarget } from './request-target.ts'

/** A question. It has the parts of the asked request that the routing decision reads. */
export interface Question {
  /** The method of the asked request, or of the question if it is invalid. */
  readonly method: string
  /** The headers of the question, which include the headers of the asked request. */
  readonly headers: IncomingHttpHeaders
  readonly httpVersion: string
  /** The target of the asked request as received, or of the question if it is invalid. */
  readonly url: string
  /** The head of the asked request. Credentials and framing are the question's own. */
  readonly head: RequestHead
  /** Whether a refusal must have a status that nginx passes on (`?as=nginx`). */
  readonly isForNginx: boolean
}

export interface Questions {
  /** Returns whether the request is for the path of the questions, or for a path below it. */
  isAtPath(request: IncomingMessage): boolean
  /** Returns the question. Returns undefined for a request that is not a question, or whose peer may not ask. */
  parse(request: IncomingMessage): Question | undefined
}

type ForwardAuth = NonNullable<Config['server']['forward_auth']>

/** @param trustedProxies `server.trusted_proxies`, for requests that reached the proxy through other proxies */
export function createQuestions({ from, path }: ForwardAuth, trustedProxies: readonly string[]): Questions {
  const mayAsk = createNetworks(from)
  const proxies = createTrustedProxies([...from, ...trustedProxies])
  const isAtPath = ({ url = '' }: IncomingMessage) =>
    url.startsWith(path) && (url.length === path.length || '/?'.includes(url.charAt(path.length)))

  return {
    isAtPath,
    parse(request) {
      if (!isAtPath(request) || !mayAsk(request.socket.remoteAddress ?? '')) return undefined
      const { method = '', url = '' } = request
      const fields = scanQuestion(request.rawHeaders)
      const isInPath = url.charAt(path.length) === '/'
      const subject = isInPath ? { method, url: url.slice(path.length), host: undefined } : subjectIn(fields)
      let isMalformed = false
      const head = parseRequestHead(request, proxies, (_, seen) => {
        const refused = refuseMessage(request, seen)
        isMalformed = refused !== undefined
        if (refused !== undefined) return refused
        if (subject === undefined || fields.hasDisguisedIdentity) return new Refusal('request_invalid')
        return parseRequestTarget(subject.url) ?? new Refusal('path_invalid')
      })
      return {
        method: subject?.method ?? method,
        headers: request.headers,
        httpVersion: request.httpVersion,
        url: subject?.url ?? url,
        // The gateway does not forward the request, so `Max-Forwards` does not end here.
        head: { ...head, host: subject?.host ?? head.host, isLastHop: false },
        isForNginx: url === `${path}?as=nginx` && !isMalformed,
      }
    },
  }
}

interface QuestionFields {
  /** The values of each field. A valid question has each of them once. */
  readonly method: string[]
  readonly uri: string[]
  readonly host: string[]
  /** Whether an identity header has another spelling, which the proxy does not replace but a service may accept. */
  hasDisguisedIdentity: boolean
}

function scanQuestion(raw: readonly string[]): QuestionFields {
  const fields: QuestionFields = { method: [], uri: [], host: [], hasDisguisedIdentity: false }
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const lower = name.toLowerCase()
    const value = raw[i + 1] as string
    if (lower === 'x-forwarded-method') fields.method.push(value)
    else if (lower === 'x-forwarded-uri') fields.uri.push(value)
    else if (lower === 'x-forwarded-host') fields.host.push(value)
    else if (mayBeIdentity.test(lower) && !identityNames.has(lower)) {
      if (identityNames.has(canonicalName(lower))) fields.hasDisguisedIdentity = true
    }
  }
  return fields
}

/** Matches every spelling of the identity headers, and some other names. */
const mayBeIdentity = /^[^a-z0-9]*x[^a-z0-9]+(?:user|peage)/

/** Returns undefined if the fields do not describe a request that a client could send. */
function subjectIn(fields: QuestionFields): { method: string; url: string; host: string } | undefined {
  const [[method = ''], [url = ''], [host = '']] = [fields.method, fields.uri, fields.host]
  const isOnce = [fields.method, fields.uri, fields.host].every(values => values.length === 1)
  return isOnce && acceptedMethods.has(method) && url.startsWith('/') && isHost(host)
    ? { method, url, host }
    : undefined
}

/** Node's parser accepts only these methods. For CONNECT, Node hands over the connection, and the gateway refuses it. */
const acceptedMethods = new Set(METHODS.filter(method => method !== 'CONNECT'))
