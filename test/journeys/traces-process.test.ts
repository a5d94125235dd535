// Traces of the real program are off by default and never delay a request. Each process sends its spans
// before it ends.
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { type Collector, startCollector } from '../support/collector.ts'
import { type Crew, startCrew } from '../support/crew.ts'
import type { Stores } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { runProgram } from '../support/program.ts'
import { describeWithServices } from '../support/services.ts'
import { eitherSetup } from '../support/setups.ts'
import { startTraced, type Traced } from '../support/traced.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

let upstream: Upstream
let collector: Collector
let traced: Traced | undefined
let stores: Stores
beforeAll(async () => {
  upstream = await startUpstream()
  stores = await eitherSetup().open()
})
beforeEach(async () => {
  collector = await startCollector()
  upstream.received.length = 0
  upstream.answer = undefined
})
afterEach(async () => {
  await traced?.stop()
  traced = undefined
  await collector.close()
})
afterAll(async () => {
  await upstream?.close()
  await eitherSetup().drop(stores)
})

/** Starts the program. @param isTold whether the environment of the program contains the URL of the collector */
async function start(env: Record<string, string> = {}, isTold = true) {
  traced = await startTraced(isTold ? collector : undefined, { routes: routes(upstream.url), stores, env })
  return traced
}

const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const tell = (name: string) => traced?.lines.filter(line => line.includes(name)) ?? []

describe('traces', () => {
  it.each([
    ['no OTEL variables', {}, false],
    ['an endpoint and OTEL_SDK_DISABLED', { OTEL_SDK_DISABLED: 'true' }, true],
  ])(
    'are off with %s: the SDK is not loaded, nothing is sent, and traceparent is forwarded unchanged',
    async (_, env, isTold) => {
      const folder = await mkdtemp(join(tmpdir(), 'peage-loaded-'))
      const loaded = await start({ ...env, ...noting(join(folder, 'loaded')) }, isTold)
      for (const traceparent of [parent, 'malformed']) {
        await call(loaded.url, 'GET', '/public/x', { headers: { traceparent, tracestate: 'a=1' } })
        expect(upstream.received.at(-1)?.headers).toMatchObject({ traceparent, tracestate: 'a=1' })
      }
      await expect.poll(() => tell('"msg":"request"')).toHaveLength(2)
      expect(tell('trace_id')).toEqual([])
      loaded.child.kill('SIGTERM')
      expect(await loaded.ended).toBe(0)
      expect(readFileSync(join(folder, 'loaded'), 'utf8')).not.toMatch(sdk)
      expect(collector.received).toEqual([])
      await rm(folder, { recursive: true })
    },
  )

  it('use the URL, headers, resource and sampler from the OTEL variables', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'peage-loaded-'))
    const told = await start({
      ...noting(join(folder, 'loaded')),
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/mine`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=one,authorization=Bearer%20collector-token',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_SERVICE_NAME: 'toll',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.instance.id=this-one',
      OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    })
    await call(told.url, 'GET', '/public/alone')
    expect(upstream.received.at(-1)?.headers.traceparent).toMatch(/-00$/)
    await told.ask('GET', '/public/sampled')
    expect(collector.spans.map(span => span.attributes['url.path'])).not.toContain('/public/alone')
    expect(collector.received[0]).toMatchObject({
      url: '/mine',
      headers: {
        'content-type': 'application/json',
        'x-tenant': 'one',
        authorization: 'Bearer collector-token',
      },
    })
    expect(collector.spans[0]?.resource).toMatchObject({
      'service.name': 'toll',
      'service.instance.id': 'this-one',
      'deployment.environment.name': 'test',
    })
    expect(tell('traces are sent').map(line => JSON.parse(line).msg)).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent as http/json, which collectors accept at the same address',
      'traces are sent',
    ])
    expect(told.lines.join('\n')).not.toContain('collector-token')
    // This program has loaded the SDK, so the pattern `sdk` must match one of the loaded files. If the pattern matched
    // nothing, the test above would prove nothing.
    told.child.kill('SIGTERM')
    await told.ended
    expect(readFileSync(join(folder, 'loaded'), 'utf8')).toMatch(sdk)
    await rm(folder, { recursive: true })
  })

  it('if OTEL variables are invalid, prevent the start with one error line each; other commands still work', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'peage-untraced-'))
    await writeFile(join(folder, 'gateway.yaml'), routes(upstream.url))
    const wrong = { OTEL_TRACES_EXPORTER: 'zipkin', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
    const { code, stderr } = await runProgram(['start'], folder, wrong)
    expect([code, stderr.split('\n')]).toEqual([
      2,
      [
        'OTEL_TRACES_EXPORTER: zipkin is not supported. Use otlp or none.',
        expect.stringMatching(/^OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported\. Use http\/json/),
        '',
      ],
    ])
    const env = { ...wrong, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '1' }
    expect((await runProgram(['explain', 'GET', '/public/x'], folder, env)).code).toBe(0)
    expect(collector.received).toEqual([])
    await rm(folder, { recursive: true })
  })

  it('do not delay requests if the collector fails; one warning is logged, and one line when it works again', async () => {
    collector.status = 400
    const { ask, url, lines } = await start({
      OTEL_BSP_MAX_QUEUE_SIZE: '8',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
    })
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => call(url, 'GET', '/public/x').then(({ status }) => status)),
      )
      expect(new Set(answers)).toEqual(new Set([200]))
    }
    await expect.poll(() => collector.received.length).toBeGreaterThan(3)
    await expect.poll(() => tell('traces cannot be sent')).not.toHaveLength(0)
    const warned = lines
      .map(line => JSON.parse(line))
      .filter(({ level, msg }) => level > 30 && !/^auth/.test(msg))
    expect(warned).toMatchObject([
      { msg: 'traces cannot be sent; spans are dropped', level: 40, reason: '400 Bad Request' },
    ])
    collector.status = 200
    await ask('GET', '/public/x')
    await expect.poll(() => tell('traces are sent again')).toHaveLength(1)
  })

  it('do not delay the shutdown if the collector cannot be reached', async () => {
    const { url, child, ended } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    })
    expect((await call(url, 'GET', '/public/x')).status).toBe(200)
    const startedAt = performance.now()
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(4_500)
  })

  it('are all sent before the process ends, even for requests that complete during the drain', async () => {
    const { url, child, ended } = await start({ OTEL_BSP_SCHEDULE_DELAY: '60000' })
    for (let i = 0; i < 20; i++) await call(url, 'GET', `/public/${i}`)
    const arrived = new Promise<() => void>(resolve => {
      upstream.answer = (_request, response) => resolve(() => response.end())
    })
    const late = call(url, 'GET', '/public/late')
    const release = await arrived
    expect(collector.received).toEqual([])
    child.kill('SIGTERM')
    await expect.poll(() => tell('"draining"')).toHaveLength(1)
    release()
    await late
    expect(await ended).toBe(0)
    const paths = collector.spans
      .filter(span => span.kind === 'server')
      .map(span => span.attributes['url.path'])
    expect(paths).toHaveLength(21)
    expect(paths).toContain('/public/late')
  })
})

describeWithServices('workers', () => {
  let crew: Crew
  afterAll(() => crew?.stop())

  it('each send their own traces with their process ID', async () => {
    crew = await startCrew({
      stores,
      routes: routes(upstream.url),
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '60000' },
    })
    const pids = crew.pids()
    // The primary distributes connections in turn. With one connection per request, both workers get requests.
    for (let i = 0; i < 4; i++) {
      await call(crew.url, 'GET', '/public/x', { headers: { connection: 'close' } })
    }
    crew.child.kill('SIGTERM')
    expect(await crew.ended).toBe(0)
    const resources = collector.spans.map(span => span.resource)
    expect(new Set(resources.map(resource => resource['process.pid']))).toEqual(new Set(pids))
    expect(new Set(resources.map(resource => resource['service.instance.id'])).size).toBe(2)
    expect(crew.lines.filter(line => line.includes('"traces are sent"'))).toHaveLength(1)
  })
})

/** Matches the path of the file in `dist` that contains the tracing SDK. */
const sdk = /\/otel-\w+\.js$/m

/** Returns an environment in which a process writes its loaded scripts to `file` when it exits. */
function noting(file: string): Record<string, string> {
  const code = `import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
const scripts = []
const session = new Session()
session.connect()
session.on('Debugger.scriptParsed', ({ params }) => scripts.push(params.url))
session.post('Debugger.enable')
process.on('exit', () => writeFileSync(${JSON.stringify(file)}, scripts.join('\\n')))`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}
