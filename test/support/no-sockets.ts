// Makes a test of the fast run fail if it opens a socket or starts a program. fast-files.ts should have excluded the
// file of this test.
import { ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import net from 'node:net'
import { afterAll, expect } from 'vitest'

/**
 * The forbidden attempts. An attempt also throws an error, but the program may treat this error as a failed upstream.
 */
const attempts: string[] = []

function forbid(owner: object, name: string, what: string): void {
  Object.defineProperty(owner, name, {
    configurable: true,
    value: () => {
      attempts.push(new Error(what).stack ?? what)
      throw new Error(`The fast run does not allow ${what}. See test/support/fast-files.ts.`)
    },
  })
}

forbid(net.Socket.prototype, 'connect', 'opening a connection')
forbid(net.Server.prototype, 'listen', 'opening a port')
forbid(dgram.Socket.prototype, 'bind', 'opening a UDP socket')
forbid(ChildProcess.prototype, 'spawn', 'starting a program')

afterAll(() => {
  expect(attempts.splice(0), 'a fast test file opens no socket and starts no program').toEqual([])
})
