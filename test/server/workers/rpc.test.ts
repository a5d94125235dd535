// Calls between the primary and a worker. The reply arrives, comes too late, or the channel is closed.
import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, it } from 'vitest'
import { createRpcChannel, type IpcChannel } from '../../../src/server/workers/rpc.ts'

const { port1, port2 } = new MessageChannel()
afterEach(() => {
  port1.removeAllListeners()
  port2.removeAllListeners()
})

const over = (port: typeof port1): IpcChannel => ({
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
  createRpcChannel(over(port2), {
    sum: async (a: number, b: number) => a + b,
    never: () => new Promise(() => {}),
    fails: async () => Promise.reject(new Error('no')),
  })
  return createRpcChannel<Asked>(over(port1), {})
}

it('each call gets its own reply, and a call without a reply returns undefined after its time limit', async () => {
  const line = pair()
  const late = line.call('never', 200)
  const sums = await Promise.all([1, 2, 3].map(number => line.call('sum', 5_000, number, 10)))
  expect(sums).toEqual([11, 12, 13])
  expect(await late).toBeUndefined()
})

it('a failed or unknown call returns undefined at once', async () => {
  const line = pair()
  expect(await line.call('fails', undefined)).toBeUndefined()
  expect(await line.call('unknown', undefined)).toBeUndefined()
})

it('pending and new calls return undefined after the channel is closed', async () => {
  const line = pair()
  const reply = line.call('never', undefined)
  line.close()
  expect(await reply).toBeUndefined()
  expect(await line.call('sum', undefined, 1, 2)).toBeUndefined()
})
