// Sends one attack on its own connection, from its own address, and collects the responses.
import { type RawAnswer, RawConnection, readAnswer, value } from '../raw-client.ts'
import { type Arena, filledIn } from './arena.ts'
import type { Attack } from './attack.ts'

export interface Shot {
  /** The loopback address of the client. The upstream and the access log use it to identify the attack. */
  readonly from: string
  readonly answers: readonly RawAnswer[]
  /** If the received bytes are not a sequence of responses, this field contains the bytes or an error. */
  readonly unreadable: string | undefined
  /**
   * The path of the sentinel. The sentinel is a valid request after the attack. It simulates a request of the next
   * client on a shared connection.
   */
  readonly sentinel: string
}

/** `longest`: the maximum wait in milliseconds. `quiet`: the silence in milliseconds that ends the wait earlier. */
const longest = 4_000
const quiet = 400

/**
 * Sends an attack.
 * @param serial selects the client address in 127.0.0.0/8; on Linux, all these addresses are loopback
 */
export async function fire(arena: Arena, { text, cut }: Attack, serial: number): Promise<Shot> {
  const from = addressOf(serial)
  const sentinel = `/public/sentinel-${serial}`
  const bytes = filledIn(arena, text)
  const connection = new RawConnection(arena.gateway.url, from)
  connection.socket.setNoDelay(true)
  const start = cut % (bytes.length + 1)
  if (start > 0) {
    connection.write(bytes.slice(0, start))
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  connection.write(
    `${bytes.slice(start)}GET ${sentinel} HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n\r\n`,
  )
  const deadline = performance.now() + longest
  let received = 0
  for (;;) {
    const left = Math.max(1, deadline - performance.now())
    if (await connection.endsWithin(received === 0 ? Math.min(left, 50) : Math.min(left, quiet))) break
    const isStill = received > 0 && connection.unread.length === received
    if (isStill || performance.now() >= deadline) break
    received = connection.unread.length
  }
  connection.close()
  return { from, sentinel, ...readAll(connection.unread, text) }
}

/** Returns a different loopback address for each number. The first address is 127.1.0.0. */
function addressOf(serial: number): string {
  const number = 0x01_00_00 + (serial % 0xfd_00_00)
  return `127.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`
}

function readAll(received: Buffer, text: string): { answers: RawAnswer[]; unreadable: string | undefined } {
  const answers: RawAnswer[] = []
  let bytes = received
  try {
    while (bytes.length > 0) {
      const read = readAnswer(bytes, true, text.includes('HEAD') ? methodFor(bytes) : 'GET')
      if (read === undefined) return { answers, unreadable: bytes.toString('latin1', 0, 200) }
      answers.push(read.answer)
      bytes = bytes.subarray(read.length)
    }
  } catch (error) {
    return { answers, unreadable: (error as Error).message }
  }
  return {
    answers: answers.filter(answer => answer.status >= 200 || answer.status === 101),
    unreadable: undefined,
  }
}

/**
 * Guesses the method of the request: a response without a body counts as a response to HEAD. The method that the client
 * sent does not help. If the gateway refuses a malformed HEAD request, the response has a body.
 */
function methodFor(bytes: Buffer): string {
  const end = bytes.indexOf('\r\n\r\n') + 4
  return end === bytes.length || bytes.toString('latin1', end, end + 7) === 'HTTP/1.' ? 'HEAD' : 'GET'
}

export const isForwarded = (answer: RawAnswer) => value(answer, 'x-upstream') !== undefined
