// Questions between a primary and a worker: answered, late, failed, or put to nobody.
import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, it } from 'vitest'
import { type Channel, createLine } from '../../../src/server/workers/rpc.ts'

const { port1, port2 } = new MessageChannel()
afterEach(() => {
  port1.removeAllListeners()
  port2.removeAllListeners()
})

const over = (port: typeof port1): Channel => ({
  send(message) {
    port.postMessage(message)
    return true
  },
  on: (event, listener) => port.on(event, listener),
})

type Asked = {
  sum(a: number, b: number): Promise<number>
  never(): Promise<number>
  fails(): Promise<number>
  unknown(): Promise<number>
}

function pair() {
  createLine(over(port2), {
    sum: async (a: number, b: number) => a + b,
    never: () => new Promise(() => {}),
    fails: async () => Promise.reject(new Error('no')),
  })
  return createLine<Asked>(over(port1), {})
}

it('each question gets its own answer, whatever the order', async () => {
  const line = pair()
  const late = line.ask('never', 200)
  const sums = await Promise.all([1, 2, 3].map(number => line.ask('sum', 5_000, number, 10)))
  expect(sums).toEqual([11, 12, 13])
  expect(await late).toBeUndefined()
})

it('what fails, or is no question, is answered with nothing and at once', async () => {
  const line = pair()
  expect(await line.ask('fails', undefined)).toBeUndefined()
  expect(await line.ask('unknown', undefined)).toBeUndefined()
})

it('nobody waits for who is gone', async () => {
  const line = pair()
  const asked = line.ask('never', undefined)
  line.close()
  expect(await asked).toBeUndefined()
  expect(await line.ask('sum', undefined, 1, 2)).toBeUndefined()
})
