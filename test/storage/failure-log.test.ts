// While a store is down for a long time, the log contains only a few lines about it.
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { StorageError } from '../../src/storage/database.ts'
import { createFailureLog } from '../../src/storage/failure-log.ts'

function logged() {
  const lines: Record<string, unknown>[] = []
  const clock = { at: 1_000_000, now: () => clock.at }
  const logger = pino(
    { base: null, timestamp: false },
    { write: (text: string) => lines.push(JSON.parse(text)) },
  )
  return { failureLog: createFailureLog({ logger, clock }), lines, clock }
}

const away = () => new StorageError('database: connect ECONNREFUSED', undefined, undefined)

it('a store failure is logged at once, then once a minute with the number of failures; the lines have no stack', () => {
  const { failureLog, lines, clock } = logged()
  let pending = 0
  for (let second = 0; second <= 120; second += 1) {
    pending += 1
    failureLog('revocations of logged-out tokens are not stored yet', away(), () => ({ pending }))
    clock.at += 1_000
  }
  const reason = 'database: connect ECONNREFUSED'
  const msg = 'revocations of logged-out tokens are not stored yet'
  expect(lines).toEqual([
    { level: 40, pending: 1, reason, failures: 1, msg },
    { level: 40, pending: 61, reason, failures: 60, msg },
    { level: 40, pending: 121, reason, failures: 60, msg },
  ])
})

it('a failure is still logged after the clock is set back', () => {
  const { failureLog, lines, clock } = logged()
  failureLog('service_unavailable', away())
  clock.at -= 3_600_000
  failureLog('service_unavailable', away())
  expect(lines).toHaveLength(2)
})

it('failures with different messages or reasons are logged separately', () => {
  const { failureLog, lines } = logged()
  failureLog('service_unavailable', away())
  failureLog('last use of an API key not recorded', away())
  failureLog('service_unavailable', new StorageError('database: no such table (42P01)', '42P01', undefined))
  failureLog('service_unavailable', away())
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    ['service_unavailable', 'database: connect ECONNREFUSED'],
    ['last use of an API key not recorded', 'database: connect ECONNREFUSED'],
    ['service_unavailable', 'database: no such table (42P01)'],
  ])
})

it('a bug of the program is logged each time, with its stack', () => {
  const { failureLog, lines } = logged()
  for (let i = 0; i < 2; i += 1) failureLog('internal_error', new TypeError('x is not a function'))
  expect(lines.map(({ err }) => (err as Error).stack)).toEqual([
    expect.stringContaining('failure-log.test.ts'),
    expect.stringContaining('failure-log.test.ts'),
  ])
})
