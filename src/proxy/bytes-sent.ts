// How many bytes the connection was handed for each answer: its head, and what was said before it, included.
import type { Socket } from 'node:net'
import type { Passage } from './request-context.ts'

const counted = Symbol('counted')
type Connection = Socket & { [counted]?: Passage | undefined }

/** To be called as a request's turn to be answered begins. */
export function beginCount(passage: Passage, connection: Connection): void {
  connection[counted] = passage
  passage.bytesBefore = connection.bytesWritten
}

/** To be called as the response closes: by then the turn of the next request may have begun, and is not counted here. */
export function endCount(passage: Passage, connection: Connection): void {
  const last = connection[counted] ?? passage
  const after = last === passage ? connection.bytesWritten : last.bytesBefore
  passage.bytesSent = after - passage.bytesBefore
  // An idle connection keeps nothing of its last request.
  if (last === passage) connection[counted] = undefined
}
