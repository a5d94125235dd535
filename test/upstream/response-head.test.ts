// The gateway relays response headers byte for byte, except hop-by-hop headers and headers reserved for the gateway.
import { describe, expect, it } from 'vitest'
import { relayHeaders } from '../../src/upstream/response-head.ts'

const relay = (fields: string[]) =>
  relayHeaders(
    200,
    fields.map(field => Buffer.from(field, 'latin1')),
    'id-1',
  )
const added = ['x-request-id', 'id-1', 'via', '1.1 peage']

describe('the headers of a response', () => {
  it('keep their case, order and bytes', () => {
    const long = `X-${'a'.repeat(200)}`
    const fields = ['ETag', '"1"', 'etag', '"2"', '\xe9', '\xff', long, '']
    expect(relay(fields)).toEqual([...fields, ...added])
  })

  it.each(['Keep-Alive', 'keep-alive', 'TE', 'Proxy-Status', 'X-Peage-Error', 'X-PEAGE-ERROR', 'Alt-Svc'])(
    'are relayed without %s, because it is a hop-by-hop header or reserved for the gateway',
    name => {
      expect(relay([name, 'x', 'X-Kept', 'y'])).toEqual(['X-Kept', 'y', ...added])
    },
  )
})
