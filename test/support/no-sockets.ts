// Makes a test file of the fast run fail if it opens a socket or starts a program. In that case, correct fast-files.ts,
// which should have excluded the test file.
import { ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import net from 'node:net'
import { afterAll, expect } from 'vitest'

/**
 * The forbidden attempts. Each attempt also throws an error. But this is not enough, because the program may handle the
 * error, for example as a failed upstream.
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
