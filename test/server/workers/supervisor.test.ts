// A worker slot: how long it stays empty after an exit, and which worker may fill it.
import pino from 'pino'
import { expect, it } from 'vitest'
import type { Config } from '../../../src/config/sections/schema.ts'
import type { ExitStatus, WorkerProcess } from '../../../src/server/workers/fork.ts'
import type { WorkerApi } from '../../../src/server/workers/protocol.ts'
import type { RpcChannel } from '../../../src/server/workers/rpc.ts'
import { createWorkerSlot, nextDelay } from '../../../src/server/workers/supervisor.ts'

it('an exited worker is replaced after 100 ms; this delay doubles with each exit up to 10 s', () => {
  const delays: number[] = []
  for (let delay = 0; delays.length < 9; delays.push(delay)) delay = nextDelay(delay, 500)
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

it('after a worker has served for 30 s, the delay starts again at 100 ms', () => {
  expect(nextDelay(10_000, 29_999)).toBe(10_000)
  expect(nextDelay(10_000, 30_000)).toBe(100)
})

/**
 * Opens a slot while the configuration is reloaded.
 * @param replies the replies of the worker, by call name
 */
async function openDuringReload(replies: Record<string, unknown>) {
  const [before, after] = [{}, {}] as Config[]
  let active = before
  let onExit: (status: ExitStatus) => void
  const ended = new Promise<ExitStatus>(resolve => {
    onExit = resolve
  })
  const call = async (name: keyof WorkerApi) => {
    if (name === 'serve') active = after
    return replies[name]
  }
  const worker: WorkerProcess = {
    pid: 1,
    ready: Promise.resolve(),
    channel: { call, close() {} } as unknown as RpcChannel<WorkerApi>,
    ended,
    kill: () => onExit({ signal: 'SIGKILL' }),
  }
  const slot = createWorkerSlot({
    fork: () => worker,
    config: () => active as Config,
    logger: pino({ level: 'silent' }),
  })
  try {
    return await slot.open()
  } finally {
    slot.kill()
  }
}

const serves = { address: 'http://127.0.0.1:8080' }

it('a worker that starts during a reload loads the new configuration before it serves', async () => {
  expect(await openDuringReload({ serve: serves, prepare: {}, finish: true })).toBe(serves.address)
})

it.each([
  ['does not build', { prepare: { error: 'no certificate' } }, 'no certificate'],
  ['does not reply to', {}, 'a worker did not activate the new configuration'],
  ['does not activate', { prepare: {} }, 'a worker did not activate the new configuration'],
])('a worker that %s the new configuration is not used', async (_, replies, error) => {
  await expect(openDuringReload({ serve: serves, ...replies })).rejects.toThrow(error)
})
