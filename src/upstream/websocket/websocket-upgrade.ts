// The upstream's 101: checked, handed to the client, and from then on a tunnel (RFC 6455 §4.1, §4.2.2).
import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { takeOver } from '../../http/upgrade.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Observer } from '../outcome.ts'
import { type AnswerRules, answerFields } from '../response-headers.ts'
import { openTunnel, type Tunnel } from './tunnel.ts'

/** What a client asked for with its handshake. */
export interface WebSocketAsked {
  readonly key: string
  /** The sub-protocols that the upstream was offered. */
  readonly offered: readonly string[]
  /** The one that is answered where the upstream was offered none: browsers fail a connection without any. */
  readonly fallback: string | undefined
  /** Told of the open WebSocket. @returns to be called when it has ended */
  onOpen(tunnel: Tunnel): () => void
}

interface Parts {
  readonly response: ServerResponse
  readonly asked: WebSocketAsked
  /** The fields of the upstream's 101, as undici gives them. */
  readonly raw: readonly Buffer[]
  readonly upstream: Duplex
  readonly requestId: string
  readonly answerRules?: AnswerRules | undefined
  /** Milliseconds. */
  readonly idle: number
  readonly observer: Pick<Observer, 'onEnd'>
}

/** @throws Refusal 502 where the upstream accepted something else than what it was asked */
export function openWebSocket(parts: Parts): void {
  const { response, asked, upstream, idle } = parts
  const fields = switchingFields(parts)
  response.writeHead(101, fields)
  response.flushHeaders()
  let forget = () => {}
  const tunnel = openTunnel({
    client: takeOver(response),
    upstream,
    idle,
    onEnd(outcome) {
      forget()
      parts.observer.onEnd(outcome)
    },
  })
  forget = asked.onOpen(tunnel)
}

function switchingFields({ asked, raw, requestId, answerRules }: Parts): string[] {
  const said = new Map<string, string>()
  for (let i = 0; i < raw.length; i += 2) {
    const name = String(raw[i]).toLowerCase()
    const before = said.get(name)
    said.set(name, before === undefined ? String(raw[i + 1]) : `${before}, ${raw[i + 1]}`)
  }
  const protocol = said.get('sec-websocket-protocol')
  if (
    said.get('upgrade')?.toLowerCase() !== 'websocket' ||
    said.get('sec-websocket-accept') !== acceptOf(asked.key) ||
    (protocol !== undefined && !asked.offered.includes(protocol))
  ) {
    throw new Refusal('upstream_unreachable', {
      cause: new Error('the upstream answered 101 to something else'),
    })
  }
  const fields = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const passed = answerFields(raw, requestId, answerRules)
  for (let i = 0; i < passed.length; i += 2) {
    const name = passed[i] as string
    // RFC 9110 §8.6: it has no body whose length could be said.
    if (name.toLowerCase() !== 'content-length') fields.push(name, passed[i + 1] as string)
  }
  if (protocol === undefined && asked.offered.length === 0 && asked.fallback !== undefined) {
    fields.push('sec-websocket-protocol', asked.fallback)
  }
  return fields
}

function acceptOf(key: string): string {
  return hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')
}
