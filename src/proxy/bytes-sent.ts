// Counts the bytes written to the connection per response, its head and informational responses included.
import type { Socket } from 'node:net'
import type { RequestContext } from './request-context.ts'

const counted = Symbol('counted')
type Connection = Socket & { [counted]?: RequestContext | undefined }

/** Call when the request's response owns the connection. */
export function startCountingBytes(context: RequestContext, connection: Connection): void {
  connection[counted] = context
  context.bytesBefore = connection.bytesWritten
}

/** Call when the response closes. By then the next pipelined response may have begun; its bytes are not counted. */
export function stopCountingBytes(context: RequestContext, connection: Connection): void {
  const last = connection[counted] ?? context
  const after = last === context ? connection.bytesWritten : last.bytesBefore
  context.bytesSent = after - context.bytesBefore
  // An idle connection must not keep its last request in memory.
  if (last === context) connection[counted] = undefined
}
