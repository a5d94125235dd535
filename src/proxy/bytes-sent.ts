// How many bytes the connection was handed for each answer: its head, and what was said before it, included.
import type { Socket } from 'node:net'
import type { RequestContext } from './request-context.ts'

const counted = Symbol('counted')
type Connection = Socket & { [counted]?: RequestContext | undefined }

/** To be called as a request's turn to be answered begins. */
export function startCountingBytes(context: RequestContext, connection: Connection): void {
  connection[counted] = context
  context.bytesBefore = connection.bytesWritten
}

/** To be called as the response closes: by then the turn of the next request may have begun, and is not counted here. */
export function stopCountingBytes(context: RequestContext, connection: Connection): void {
  const last = connection[counted] ?? context
  const after = last === context ? connection.bytesWritten : last.bytesBefore
  context.bytesSent = after - context.bytesBefore
  // An idle connection keeps nothing of its last request.
  if (last === context) connection[counted] = undefined
}
