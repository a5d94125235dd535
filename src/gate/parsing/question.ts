// Parses the questions of forward auth (`server.forward_auth`). With a question, a proxy asks whether it may forward
// the request of a client. The proxy, not the gateway, then forwards the request. See docs/forward-auth.md.
import { type IncomingHttpHeaders, type IncomingMessage, METHODS } from 'node:http'
import { canonicalName, identityNames } from '../../config/formats/header-names.ts'
import type { Config } from '../../config/sections/schema.ts'
import { createNetworks, createTrustedProxies } from '../../http/client-address.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { parseRequestHead, type RequestHead, refuseMessage } from './request-head.ts'
import { isHost, parseRequestTarget } from './request-target.ts'

/** A question, with the parts of the client's request that the routing decision reads. */
export interface Question {
  /**
   * The method of the client's request. If the question does not describe a valid request, this is the question's own
   * method.
   */
  readonly method: string
  /** The headers of the question, which include the headers of the client's request. */
  readonly headers: IncomingHttpHeaders
  readonly httpVersion: string
  /**
   * The target of the client's request. If the question does not describe a valid request, this is the question's own
   * target.
   */
  readonly url: string
  /** The head of the client's request. Its credentials and framing are read from the question. */
  readonly head: RequestHead
  /** Whether the question has `?as=nginx`. A refusal must then have a status that nginx passes on to the client. */
  readonly isForNginx: boolean
}

export interface Questions {
  /** Returns whether the request is for `server.forward_auth.path`, or for a path below it. */
  isAtPath(request: IncomingMessage): boolean
  /**
   * Parses a question. Returns undefined if the path is different, or if the peer is not in `server.forward_auth.from`.
   */
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
        // `Max-Forwards` has no effect, because the proxy forwards the request and the gateway does not.
        head: { ...head, host: subject?.host ?? head.host, isLastHop: false },
        isForNginx: url === `${path}?as=nginx` && !isMalformed,
      }
    },
  }
}

interface QuestionFields {
  /** The values of three `X-Forwarded-*` headers. In a valid question, each of these lists has exactly one value. */
  readonly method: string[]
  readonly uri: string[]
  readonly host: string[]
  /**
   * Whether there is an identity header in another spelling, for example `X_User_Id`. The proxy does not replace this
   * header, but a service could accept it.
   */
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

/** A fast first check. Matches every spelling of the identity headers, but also some other names. */
const mayBeIdentity = /^[^a-z0-9]*x[^a-z0-9]+(?:user|peage)/

/** Returns undefined if the fields do not describe a request that a client could send. */
function subjectIn(fields: QuestionFields): { method: string; url: string; host: string } | undefined {
  const [[method = ''], [url = ''], [host = '']] = [fields.method, fields.uri, fields.host]
  const isOnce = [fields.method, fields.uri, fields.host].every(values => values.length === 1)
  return isOnce && acceptedMethods.has(method) && url.startsWith('/') && isHost(host)
    ? { method, url, host }
    : undefined
}

/** The methods that clients can use. Node's parser rejects all other methods, and the gateway refuses CONNECT. */
const acceptedMethods = new Set(METHODS.filter(method => method !== 'CONNECT'))
