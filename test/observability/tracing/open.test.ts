// The OpenTelemetry environment variables switch traces on or off. Invalid values are reported.
import { describe, expect, it } from 'vitest'
import { readLimited } from '../../../src/config/read-file.ts'
import { readTracing as readTracingWith } from '../../../src/observability/tracing/open.ts'

const readTracing = (env: Record<string, string>) => readTracingWith(env, readLimited)

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

describe('tracing', () => {
  it.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    [{ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'True' }],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
  ])('is off with the environment variables %j', env => {
    expect(readTracing(env)).toEqual({ problems: [] })
  })

  it.each([
    [endpoint, 'http://collector:4318/v1/traces'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://u:secret@collector/otlp/?k=secret' },
      'https://collector/otlp/v1/traces',
    ],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector/mine' }, 'http://collector/mine'],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/mine' }, 'http://other/mine'],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'http://localhost:4318/v1/traces'],
    [
      { ...endpoint, OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: '' },
      'http://collector:4318/v1/traces',
    ],
  ])('is on with the environment variables %j, and sends to %s', (env, sentTo) => {
    expect(readTracing(env)).toEqual({ traces: { endpoint: sentTo, warnings: [] }, problems: [] })
  })

  it.each([{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, { OTEL_RESOURCE_ATTRIBUTES: 'a=1,b=%2C,' }])(
    'causes no warning with the environment variables %j',
    env => {
      expect(readTracing({ ...endpoint, ...env }).traces?.warnings).toEqual([])
    },
  )

  it('warns that traces are sent as JSON instead of http/protobuf', () => {
    expect(
      readTracing({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }).traces?.warnings,
    ).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent as http/json, which collectors accept at the same address',
    ])
  })

  it.each(['a', 'a=b=c', '=x', 'a=%'])('warns that the resource attributes %j are ignored', attributes => {
    expect(readTracing({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES: attributes }).traces?.warnings).toEqual([
      'OTEL_RESOURCE_ATTRIBUTES: ignored. Write key=value,key=value with percent-encoded values.',
    ])
  })

  it.each([
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: zipkin is not supported. Use otlp or none.'],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: grpc is not supported. Use http/json and the collector's OTLP/HTTP endpoint (port 4318).",
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http:// or https:// URL',
    ],
    [
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '/v1/traces' },
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be an http:// or https:// URL',
    ],
    [
      { OTEL_TRACES_SAMPLER: 'ratio' },
      'OTEL_TRACES_SAMPLER: ratio is not supported. Use one of always_on, always_off, parentbased_always_on, parentbased_always_off, traceidratio, parentbased_traceidratio.',
    ],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '10%' },
      'OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1',
    ],
  ])('reports the problem in the environment variables %j', (env, problem) => {
    expect(readTracing({ ...endpoint, ...env })).toEqual({ problems: [problem] })
  })

  it.each([
    ['"Authorization=Basic abc"', 'begins with a quotation mark. Write name=value without quotation marks.'],
    ["'Authorization=Basic abc'", 'begins with a quotation mark. Write name=value without quotation marks.'],
    ['api-key', 'entry 1 is not name=value. Write a comma in a value as %2C.'],
    ['a=1,=2', 'entry 2 is not name=value. Write a comma in a value as %2C.'],
    ['a=1;2', 'entry 1 contains a semicolon. Write it as %3B.'],
    ['a=100%', 'entry 1 contains a % without a valid escape such as %2C. Write it as %25.'],
    ['a=1, my key=2', 'entry 2 has a name with characters that are not allowed in a header name'],
    ['"a"=1', 'begins with a quotation mark. Write name=value without quotation marks.'],
    ['x=1,"a"=1', 'entry 2 has a name with characters that are not allowed in a header name'],
    ['a=b%0D%0Ac', 'entry 1 has a value with characters that are not allowed in a header'],
    ['a=€', 'entry 1 has a value with characters that are not allowed in a header'],
    ['a=%E2%82%AC', 'entry 1 has a value with characters that are not allowed in a header'],
    ['Content-Length=5', 'entry 1 sets the header content-length, which the gateway sets itself'],
  ])('refuses the headers %j, because they cannot be sent', (headers, message) => {
    for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'])
      expect(readTracing({ ...endpoint, [name]: headers })).toEqual({ problems: [`${name}: ${message}`] })
  })

  it.each(['Authorization=Basic%20YWJj=,x=1,', 'Authorization=Basic YWJj==', 'a=é,b="c"'])(
    'accepts the headers %j',
    headers => {
      expect(readTracing({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers })).toMatchObject({
        traces: { warnings: [] },
        problems: [],
      })
    },
  )

  it.each([
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'api-key=' }, 'entry 1 has no value and is not sent'],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '10s' }, 'is not a number; the default is used'],
    [{ OTEL_BSP_MAX_QUEUE_SIZE: 'many' }, 'is not a number; the default is used'],
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd' }, 'is not gzip or none; traces are sent without compression'],
  ])('warns that the OpenTelemetry SDK ignores the value in %j', (env, message) => {
    expect(readTracing({ ...endpoint, ...env } as Record<string, string>).traces?.warnings).toEqual([
      `${Object.keys(env)[0]}: ${message}`,
    ])
  })

  it.each([
    [{ OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '0' }, 'must be a whole number from 1 to 2147483647'],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '3000000000' }, 'must be a whole number from 1 to 2147483647'],
    [{ OTEL_BSP_SCHEDULE_DELAY: '-1' }, 'must be a whole number from 0 to 2147483647'],
    [{ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '0' }, 'must be a whole number from 1 to 9007199254740991'],
    [{ OTEL_EXPORTER_OTLP_CERTIFICATE: '/no/ca.pem' }, 'cannot read the file "/no/ca.pem" (no such file)'],
    [{ OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: '/' }, 'cannot read the file "/" (a directory, not a file)'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://u:p%ss@c' },
      'the user or password contains a % without a valid escape. Write it as %25.',
    ],
  ])('refuses the variables %j, because no span would arrive at the collector', (env, message) => {
    expect(readTracing({ ...endpoint, ...env } as Record<string, string>)).toEqual({
      problems: [`${Object.keys(env)[0]}: ${message}`],
    })
  })

  it('reports all problems at once', () => {
    const env = { OTEL_TRACES_EXPORTER: 'jaeger', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
    expect(readTracing(env).problems).toEqual([
      expect.stringContaining('jaeger'),
      expect.stringContaining('grpc'),
    ])
  })
})
