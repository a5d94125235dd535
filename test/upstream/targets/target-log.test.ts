// The log reports when a target becomes unhealthy or healthy again, with the same target name as metrics and console.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { startTargetLog } from '../../../src/upstream/targets/target-log.ts'
import type { TargetStatus } from '../../../src/upstream/targets/target-status.ts'
import { courses } from '../../support/certificates.ts'
import { call } from '../../support/client.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { type MortalUpstream, startMortal } from '../mortal-upstream.ts'

describe('a gateway whose targets fail', () => {
  let failing: MortalUpstream
  let silent: MortalUpstream
  let secure: MortalUpstream
  let breaking: MortalUpstream
  let gateway: TestGateway
  beforeAll(async () => {
    ;[failing, silent, secure, breaking] = await Promise.all([
      startMortal('failing'),
      startMortal('silent'),
      startMortal('secure', { cert: courses.cert, key: courses.key }),
      startMortal('breaking'),
    ])
    failing.answer = (_, response) => void response.writeHead(500).end()
    silent.answer = () => {}
    breaking.answer = request => void request.socket.destroy()
    const health = 'health: { path: /health, interval: 50ms, timeout: 250ms, unhealthy_after: 2 }'
    const named = silent.url.replace('127.0.0.1', 'localhost')
    gateway = await startGateway(`upstreams:
  failing: { targets: ['${failing.url}'], ${health} }
  silent: { targets: ['${named}'], ${health} }
  secure: { targets: ['${secure.url}'], ${health} }
  closed: { targets: ['http://127.0.0.1:1'], ${health} }
  breaking: { targets: ['${breaking.url}'], circuit_breaker: { failures: 50%, of_at_least: 1, open_for: 1h } }
routes:
  - { path: /app, upstream: failing, auth: none }
  - { path: /breaking, upstream: breaking, auth: none }
`)
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([failing, silent, secure, breaking].map(one => one?.kill()))
  })

  const linesOf = (upstream: string) =>
    gateway.log
      .filter(line => line.includes('"msg":"target is'))
      .map(line => JSON.parse(line) as Record<string, unknown>)
      .filter(line => line.upstream === upstream)
  const patiently = { timeout: 15_000 }

  it('writes one log line for each target, with the cause', async () => {
    await call(gateway.url, 'GET', '/breaking')
    const cases: [name: string, target: string, cause: string][] = [
      ['failing', failing.url, 'status 500'],
      ['silent', silent.url.replace('127.0.0.1', 'localhost'), 'timeout'],
      ['secure', secure.url, 'certificate not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)'],
      ['closed', 'http://127.0.0.1:1', 'connection refused (ECONNREFUSED)'],
      ['breaking', breaking.url, 'circuit breaker is open'],
    ]
    for (const [upstream, target, cause] of cases) {
      await expect.poll(() => linesOf(upstream), patiently).toHaveLength(1)
      expect(linesOf(upstream)).toMatchObject([{ level: 40, target, cause, msg: 'target is unhealthy' }])
    }
  })

  it('writes one log line when a target is healthy again', async () => {
    failing.answer = (_, response) => void response.end()
    await expect.poll(() => linesOf('failing'), patiently).toHaveLength(2)
    expect(linesOf('failing')[1]).toMatchObject({
      level: 30,
      target: failing.url,
      msg: 'target is healthy again',
    })
  })
})

describe('the log of targets', () => {
  const well: TargetStatus = {
    upstream: 'app',
    target: 'http://app:9000 (10.0.0.1)',
    isHealthy: true,
    checks: 'passing',
    problem: null,
    circuit: null,
    isEjected: false,
  }
  const ill: TargetStatus = { ...well, isHealthy: false, checks: 'failing', problem: 'timeout' }
  let statuses: readonly TargetStatus[]
  let lines: [level: string, fields: object, text: string][]
  let stop: () => void
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    statuses = []
    lines = []
    const write = (level: string) => (fields: object, text: string) => void lines.push([level, fields, text])
    stop = startTargetLog({
      targetStatus: async () => statuses,
      logger: { info: write('info'), warn: write('warn') } as never,
    })
  })
  afterEach(() => {
    stop()
    vi.useRealTimers()
  })

  it('contains one line for each address of a target', async () => {
    const other = { ...ill, target: 'http://app:9000 (10.0.0.2)' }
    statuses = [ill, other]
    await vi.advanceTimersByTimeAsync(30_000)
    expect(lines).toEqual(
      [ill, other].map(({ upstream, target }) => [
        'warn',
        { upstream, target, cause: 'timeout' },
        'target is unhealthy',
      ]),
    )
  })

  it('has no line for a name without addresses, or for an address that has not been checked yet', async () => {
    statuses = [
      { ...ill, checks: null, problem: null },
      { ...ill, problem: null },
    ]
    await vi.advanceTimersByTimeAsync(30_000)
    expect(lines).toEqual([])
  })

  it('does not repeat a line if a process does not report its targets for a short time', async () => {
    statuses = [ill]
    await vi.advanceTimersByTimeAsync(1_000)
    statuses = []
    await vi.advanceTimersByTimeAsync(30_000)
    statuses = [ill]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(lines).toHaveLength(1)
    statuses = [well]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(lines).toHaveLength(2)
  })

  it('contains the cause "requests failed" if the target has no health checks', async () => {
    statuses = [{ ...well, isHealthy: false, checks: null, isEjected: true }]
    await vi.advanceTimersByTimeAsync(1_000)
    expect(lines).toMatchObject([['warn', { cause: 'requests failed' }, 'target is unhealthy']])
  })
})
