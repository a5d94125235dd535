// Parses and writes the `traceparent` header (W3C Trace Context, section 3.2).
import { createTraceState, type SpanContext, TraceFlags } from '@opentelemetry/api'

/**
 * @param traceparent the header from node:http. If the client repeats the header, node:http joins the values, and the
 *   result is malformed.
 * @param tracestate the header from node:http
 * @returns undefined if `traceparent` is malformed; the gateway then begins a new trace
 */
export function readParent(
  traceparent: string | string[] | undefined,
  tracestate: string | string[] | undefined,
): SpanContext | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = syntax.exec(traceparent) ?? []
  // The header of a later version may have more members (W3C Trace Context, section 3.2.4).
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(typeof tracestate === 'string' ? { traceState: createTraceState(tracestate) } : {}),
  }
}

const syntax = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

export function writeParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
}
