// Tests how WebSocket handshakes are recognized (RFC 6455 §4.2.1), and how tokens are read from sub-protocols.
import { describe, expect, it } from 'vitest'
import {
  asksForWebSocket,
  isHandshake,
  parseOfferedProtocols,
} from '../../../src/gate/parsing/websocket-handshake.ts'
import { aRequest } from '../a-request.ts'

const valid = {
  connection: 'keep-alive, Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}
const withHeaders = (headers: Record<string, string>, received: Parameters<typeof aRequest>[1] = {}) =>
  aRequest(Object.entries(headers), received)

describe('a request for a WebSocket', () => {
  it.each(['websocket', 'WebSocket', 'h2c, websocket', ' websocket ,x'])(
    'is recognized if it contains the header Upgrade: %s',
    upgrade => {
      expect(asksForWebSocket(withHeaders({ upgrade }))).toBe(true)
    },
  )

  it.each([undefined, '', 'h2c', 'websocket2', 'websocket/13'])(
    'is not recognized if it contains the header Upgrade: %s',
    upgrade => {
      expect(asksForWebSocket(withHeaders(upgrade === undefined ? {} : { upgrade }))).toBe(false)
    },
  )
})

describe('a handshake', () => {
  it('is valid in the form that browsers send, and also with a Content-Length of 0', () => {
    expect(isHandshake(withHeaders(valid))).toBe(true)
    expect(isHandshake(withHeaders({ ...valid, 'content-length': '0' }))).toBe(true)
  })

  it.each([
    { connection: 'keep-alive' },
    { connection: 'Upgrade\xa0' },
    { 'transfer-encoding': 'chunked' },
    { 'content-length': '1' },
    { expect: '100-continue' },
    { 'sec-websocket-version': '8' },
    { 'sec-websocket-key': '' },
    { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ' },
    { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZ!==' },
    { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZR==' },
    { 'sec-websocket-key': 'hlIHNhbXBsZSBub25jZQ==' },
    { 'sec-websocket-key': 'AAdGhlIHNhbXBsZSBub25jZQ==' },
    { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ==' },
    { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==A' },
  ])('is invalid with the headers %j', headers => {
    expect(isHandshake(withHeaders({ ...valid, ...headers }))).toBe(false)
  })

  it.each(['connection', 'sec-websocket-version', 'sec-websocket-key'])('is invalid without %s', name => {
    const { [name as keyof typeof valid]: _, ...others } = valid
    expect(isHandshake(withHeaders(others))).toBe(false)
  })

  it('is invalid if the parser of Node did not mark the request as an upgrade', () => {
    expect(isHandshake(Object.assign(withHeaders(valid), { upgrade: false }))).toBe(false)
  })

  it('must be a GET request in HTTP/1.1', () => {
    expect(isHandshake(withHeaders(valid, { method: 'POST' }))).toBe(false)
    expect(isHandshake(withHeaders(valid, { httpVersion: '1.0' }))).toBe(false)
  })
})

describe('parseOfferedProtocols', () => {
  it('separates the tokens from the other sub-protocols and keeps the order', () => {
    expect(parseOfferedProtocols('chat, peage.bearer.abc ,graphql-ws')).toEqual({
      bearers: ['abc'],
      others: ['chat', 'graphql-ws'],
    })
    expect(parseOfferedProtocols(undefined)).toEqual({ bearers: [], others: [] })
  })

  it.each(['Peage.Bearer.abc', '\xff peage.bearer.abc', 'x-peage.bearer.abc', '"peage.bearer.abc"'])(
    'drops the sub-protocol %j without reading a token from it',
    entry => {
      expect(parseOfferedProtocols(`${entry}, chat`)).toEqual({ bearers: [], others: ['chat'] })
    },
  )
})
