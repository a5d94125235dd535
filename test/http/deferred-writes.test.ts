// Tests that deferred writes are sent once and in order, at the latest before the next poll of the event loop.
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defer, endDeferred, flushDeferred } from '../../src/http/deferred-writes.ts'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { listen } from '../support/upstream.ts'

const seed = 20_261_122
const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** A deferred write. When it is sent, it defers the writes in `defers`. */
interface Write {
  defers: Write[]
}
const deepest = 3
const write: fc.Memo<Write> = fc.memo(depth =>
  fc.record({ defers: depth > 1 ? fc.array(write(), { maxLength: 2 }) : fc.constant([]) }),
)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('defer' as const), write: write(deepest) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'flush' } as const) },
  { weight: 1, arbitrary: fc.constant({ do: 'turn' } as const) },
)

describe('deferred writes', () => {
  it('are sent once and in order, at the latest in the next turn of the event loop, even if they defer other writes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
        const sent: number[] = []
        let made = 0
        const put = (write: Write) => {
          const id = made
          made += 1
          defer({
            send() {
              sent.push(id)
              for (const inner of write.defers) put(inner)
            },
          })
        }
        for (const each of steps) {
          const [sentBefore, madeBefore] = [sent.length, made]
          if (each.do === 'defer') {
            put(each.write)
            expect(sent).toHaveLength(sentBefore)
          } else if (each.do === 'flush') {
            flushDeferred()
            expect(sent).toHaveLength(madeBefore)
          } else {
            await nextTurn()
            expect(sent.length).toBeGreaterThanOrEqual(madeBefore)
          }
        }
        // Each write can defer further writes to the next turn. Therefore, the test waits one turn for each level of
        // nested writes.
        for (let depth = 0; depth < deepest; depth += 1) await nextTurn()
        expect(sent).toEqual(Array.from({ length: made }, (_, id) => id))
      }),
      { seed, numRuns: 500 },
    )
  })

  it('run outside the async context of the request that deferred them', async () => {
    const storage = new AsyncLocalStorage<string>()
    const found: (string | undefined)[] = []
    const write = { send: () => found.push(storage.getStore()) }
    storage.run('a request', () => defer(write))
    defer(write)
    await nextTurn()
    expect(found).toEqual([undefined, undefined])
  })
})

describe('a response', () => {
  let server: Server
  let url: string
  const responses: ServerResponse[] = []
  let arrived = () => {}
  beforeAll(async () => {
    server = createServer((_request, response) => {
      responses.push(response)
      arrived()
    })
    url = await listen(server)
  })
  afterAll(() => server.close())

  const latin1 = fc.integer({ min: 1, max: 255 }).map(code => String.fromCharCode(code))
  const part = fc.string({ unit: latin1, minLength: 1, maxLength: 8 })
  const answer = fc.record({ parts: fc.array(part, { maxLength: 3 }), last: part, isDeferred: fc.boolean() })

  it('is sent with its bytes in order, even if other responses are written and ended at the same time', async () => {
    const connections = Array.from({ length: 3 }, () => new RawConnection(url))
    await Promise.all(connections.map(({ socket }) => once(socket, 'connect')))
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(answer, answer, answer),
        fc.array(fc.record({ which: fc.nat(2), after: fc.constantFrom('go on', 'flush', 'turn') })),
        async (answers, steps) => {
          responses.length = 0
          for (const [index, connection] of connections.entries()) {
            const came = new Promise<void>(resolve => {
              arrived = resolve
            })
            connection.write(requestBytes('GET', `/${index}`))
            await came
          }
          const left = answers.map(({ parts }) => [...parts])
          const goOn = (index: number) => {
            const response = responses[index]
            const { last, isDeferred } = answers[index] ?? { last: '', isDeferred: false }
            if (response === undefined || response.writableEnded || ended.has(index)) return
            const next = left[index]?.shift()
            if (next !== undefined) response.write(next, 'latin1')
            else {
              ended.add(index)
              if (isDeferred) endDeferred(response, last)
              else response.end(last, 'latin1')
            }
          }
          const ended = new Set<number>()
          for (const { which, after } of steps) {
            goOn(which)
            if (after === 'flush') flushDeferred()
            else if (after === 'turn') await nextTurn()
          }
          for (const index of answers.keys()) while (!ended.has(index)) goOn(index)
          for (const [index, { parts, last }] of answers.entries()) {
            const answer = await connections[index]?.answer()
            expect(answer?.body.toString('latin1')).toBe([...parts, last].join(''))
          }
          expect(connections.map(({ unread }) => unread.length)).toEqual([0, 0, 0])
        },
      ),
      { seed, numRuns: 200 },
    )
    for (const connection of connections) connection.close()
  })
})
