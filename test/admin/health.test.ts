// Tests the report of `/readyz` about the stores and the workers.
import { describe, expect, it } from 'vitest'
import { createHealth, type WorkerHealth } from '../../src/admin/health.ts'
import type { ReloadResult } from '../../src/observability/metrics/counters.ts'

const up = { postgres: true, redis: true }

/**
 * @param workers one entry per worker: which stores the worker reaches, `undefined` if it does not respond, or `gone`
 * if it has ended
 */
function health(
  workers: (WorkerHealth['stores'] | 'gone')[] | undefined,
  own = up,
  lastReload: ReloadResult = 'success',
  isStopping = false,
) {
  return createHealth({
    postgres: async () => own.postgres,
    redis: async () => own.redis,
    warnings: () => [],
    lastReload: () => lastReload,
    isStopping: () => isStopping,
    workers:
      workers &&
      (async () =>
        workers.map((reach, index) =>
          reach === 'gone' ? { pid: undefined, stores: undefined } : { pid: index + 1, stores: reach },
        )),
  })
}

describe('the readiness report', () => {
  it('has no entry `workers` if the gateway runs as a single process', async () => {
    expect(await health(undefined).readiness()).toEqual({
      status: 'ok',
      checks: { postgres: 'ok', redis: 'ok' },
    })
    expect(await health(undefined).publicReadiness()).toEqual({ status: 'ok', checks: {} })
  })

  it.each(['refused', 'incomplete'] as const)(
    'has the status "ok" and contains the result of the last reload, which is "%s"',
    async lastReload => {
      expect(await health(undefined, up, lastReload).readiness()).toEqual({
        status: 'ok',
        checks: { postgres: 'ok', redis: 'ok' },
        configuration: lastReload,
      })
      expect(await health(undefined, up, lastReload).publicReadiness()).toEqual({ status: 'ok', checks: {} })
    },
  )

  it('has the status "down" and the failed check "listener" as soon as the gateway stops, with or without an admin token', async () => {
    const one = health(undefined, up, 'success', true)
    expect(await one.readiness()).toEqual({
      status: 'down',
      checks: { postgres: 'ok', redis: 'ok', listener: 'down' },
    })
    expect(await one.publicReadiness()).toEqual({ status: 'down', checks: { listener: 'down' } })
    const ofWorkers = health([up], up, 'success', true)
    expect(await ofWorkers.publicReadiness()).toEqual({
      status: 'down',
      checks: { workers: 'ok', listener: 'down' },
    })
  })

  it.each([
    ['all workers respond', [up, up], 'ok', 'ok', []],
    ['one worker does not respond', [up, undefined], 'degraded', 'degraded', ['worker 2 does not respond']],
    [
      'one worker has ended',
      [up, 'gone'],
      'degraded',
      'degraded',
      ['a worker has exited and is being replaced'],
    ],
    [
      'no worker responds',
      [undefined, 'gone'],
      'down',
      'down',
      ['worker 1 does not respond', 'a worker has exited and is being replaced'],
    ],
  ] as const)('matches the state of the workers if %s', async (_, workers, mark, status, warnings) => {
    const report = await health([...workers]).readiness()
    expect(report).toEqual({
      status,
      checks: { postgres: 'ok', redis: 'ok', workers: mark },
      ...(warnings.length === 0 ? {} : { warnings }),
    })
    expect(await health([...workers]).publicReadiness()).toEqual({ status, checks: { workers: mark } })
  })

  it('has the status "degraded" if one worker cannot reach Postgres, and "down" if no worker can reach Postgres', async () => {
    const some = await health([up, { ...up, postgres: false }]).readiness()
    expect(some).toMatchObject({
      status: 'degraded',
      checks: { postgres: 'degraded', workers: 'ok' },
      warnings: ['worker 2 cannot reach postgres'],
    })
    const all = await health([{ ...up, postgres: false }]).readiness()
    expect(all).toMatchObject({ status: 'down', checks: { postgres: 'down' } })
  })

  it('has the status "degraded", not "down", if workers or the primary cannot reach Redis', async () => {
    const none = { ...up, redis: false }
    expect(await health([up, none]).readiness()).toMatchObject({
      status: 'degraded',
      checks: { redis: 'degraded' },
      warnings: ['worker 2 cannot reach redis'],
    })
    expect(await health([none, none]).readiness()).toMatchObject({
      status: 'degraded',
      checks: { redis: 'down' },
    })
    expect(await health([up, up], none).readiness()).toMatchObject({
      status: 'degraded',
      checks: { redis: 'down' },
    })
  })

  it('has the status "down" if the primary cannot reach Postgres', async () => {
    const report = await health([up, up], { ...up, postgres: false }).readiness()
    expect(report).toMatchObject({ status: 'down', checks: { postgres: 'down', workers: 'ok' } })
  })
})
