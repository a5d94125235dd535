// In the fast run: fails a test file that opens a socket or starts a program, which it was not seen to do (fast-files.ts).
import { ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import net from 'node:net'
import { afterAll, expect } from 'vitest'

/** Kept, for what throws in the program may be taken for an upstream that is away. */
const attempts: string[] = []

function forbid(owner: object, name: string, what: string): void {
  Object.defineProperty(owner, name, {
    configurable: true,
    value: () => {
      attempts.push(new Error(what).stack ?? what)
      throw new Error(`${what} in the fast run: see test/support/fast-files.ts`)
    },
  })
}

forbid(net.Socket.prototype, 'connect', 'a connection is opened')
forbid(net.Server.prototype, 'listen', 'a port is opened')
forbid(dgram.Socket.prototype, 'bind', 'a UDP socket is opened')
forbid(ChildProcess.prototype, 'spawn', 'a program is started')

afterAll(() => {
  expect(attempts.splice(0), 'a fast test file opens no socket and starts no program').toEqual([])
})
