// Tests `readBodyless` and `releaseBodyless`, which save CPU and memory for requests without a body.
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { readBodyless, releaseBodyless } from '../../src/http/node-internals.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const events: string[] = []
let served: WeakRef<IncomingMessage>[] = []

const server = createServer((request, response) => {
  served.push(new WeakRef(request))
  if (request.url !== '/unread') readBodyless(request)
  for (const event of ['end', 'close']) request.on(event, () => events.push(`${request.url} ${event}`))
  response.on('close', () => {
    if (request.url === '/released') releaseBodyless(request)
  })
  response.end('ok')
})

async function get(path: string): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const [response] = await once(send({ port, path, agent }).end(), 'response')
  let body = ''
  for await (const chunk of response as IncomingMessage) body += chunk
  return body
}

/** Returns how many served requests are still in memory while the connection is idle. */
async function kept(): Promise<number> {
  await new Promise(resolve => setTimeout(resolve, 20))
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return served.filter(ref => ref.deref() !== undefined).length
}

afterEach(() => {
  agent.destroy()
  server.close()
  events.length = 0
  served = []
})

describe('a request without a body', () => {
  it('emits neither `end` nor `close` after `readBodyless`, which saves CPU', async () => {
    await get('/unread')
    await get('/released')
    await kept()
    expect(events).toEqual(['/unread end', '/unread close'])
  })

  it('is released from memory by `releaseBodyless`, although Node’s parser would keep it until the next request', async () => {
    for (let i = 0; i < 3; i += 1) expect(await get('/released')).toBe('ok')
    expect(await kept()).toBe(0)
    await get('/kept')
    expect(await kept()).toBe(1)
  })
})
