// Parsing of sub-protocols: bearer tokens, ordinary protocols, and misspelt secrets (CONTRACT §4).
import { describe, expect, it } from 'vitest'
import { parseOfferedProtocols } from '../../../src/gate/parsing/websocket-handshake.ts'

describe('offered sub-protocols', () => {
  it('take the tokens out and leave the others, in order', () => {
    expect(parseOfferedProtocols('chat, peage.bearer.abc ,graphql-ws')).toEqual({
      bearers: ['abc'],
      others: ['chat', 'graphql-ws'],
    })
    expect(parseOfferedProtocols(undefined)).toEqual({ bearers: [], others: [] })
  })

  it.each(['Peage.Bearer.abc', '\xff peage.bearer.abc', 'x-peage.bearer.abc', '"peage.bearer.abc"'])(
    'take %j for no credential, and tell nobody',
    entry => {
      expect(parseOfferedProtocols(`${entry}, chat`)).toEqual({ bearers: [], others: ['chat'] })
    },
  )
})
