// How OpenTelemetry's variables are read: on, off, or wrong.
import { describe, expect, it } from 'vitest'
import { readTracing } from '../../../src/observability/tracing/open.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

describe('tracing', () => {
  it.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    [{ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }],
    [{ ...endpoint, OTEL_SDK_DISABLED: 'True' }],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
  ])('is off with %j', env => {
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
  ])('is on with %j, and sends to %s', (env, sentTo) => {
    expect(readTracing(env)).toEqual({ traces: { endpoint: sentTo, warnings: [] }, problems: [] })
  })

  it.each([{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, { OTEL_RESOURCE_ATTRIBUTES: 'a=1,b=%2C,' }])(
    'with %j it has nothing to say',
    env => {
      expect(readTracing({ ...endpoint, ...env }).traces?.warnings).toEqual([])
    },
  )

  it('says that http/protobuf is sent as JSON', () => {
    expect(
      readTracing({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }).traces?.warnings,
    ).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent as http/json, which collectors take at the same address',
    ])
  })

  it.each(['a', 'a=b=c', '=x', 'a=%'])('says that the resource attributes %j are not read', attributes => {
    expect(readTracing({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES: attributes }).traces?.warnings).toEqual([
      'OTEL_RESOURCE_ATTRIBUTES: none is taken; make it key=value,key=value, percent-encoded',
    ])
  })

  it.each([
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: zipkin is not there; otlp and none are'],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
      'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: grpc is not spoken; make it http/json, and the endpoint the collector’s for OTLP over HTTP (port 4318)',
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
      'OTEL_EXPORTER_OTLP_ENDPOINT: not an http:// or https:// URL',
    ],
    [
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '/v1/traces' },
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not an http:// or https:// URL',
    ],
    [
      { OTEL_TRACES_SAMPLER: 'ratio' },
      'OTEL_TRACES_SAMPLER: ratio is not there; always_on, always_off, parentbased_always_on, parentbased_always_off, traceidratio, parentbased_traceidratio are',
    ],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '10%' },
      'OTEL_TRACES_SAMPLER_ARG: not a number from 0 to 1',
    ],
  ])('with %j it says what is wrong', (env, problem) => {
    expect(readTracing({ ...endpoint, ...env })).toEqual({ problems: [problem] })
  })

  it('says all of it at once', () => {
    const env = { OTEL_TRACES_EXPORTER: 'jaeger', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
    expect(readTracing(env).problems).toEqual([
      expect.stringContaining('jaeger'),
      expect.stringContaining('grpc'),
    ])
  })
})
