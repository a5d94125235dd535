// A name server on loopback (UDP) that responds to A and AAAA queries as a test specifies.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import ipaddr from 'ipaddr.js'

export type RecordType = 'A' | 'AAAA'

/**
 * The answer to a query. If it is a list of addresses, the server sends only the addresses of the queried type. If it
 * is `silent`, the server sends nothing.
 */
export type DnsAnswer = readonly string[] | 'nxdomain' | 'silent'

export interface DnsStub {
  /** The address to put into the list `servers` of a resolver. */
  readonly address: string
  /** The queries, in the order received. */
  readonly asked: { readonly name: string; readonly type: RecordType }[]
  close(): Promise<void>
}

const types: Record<number, RecordType> = { 1: 'A', 28: 'AAAA' }

/** Starts the name server. The TTL of its DNS answers is 0, so that resolvers do not cache them. */
export async function startDnsStub(answer: (name: string, type: RecordType) => DnsAnswer): Promise<DnsStub> {
  const socket = createSocket('udp4')
  const asked: { name: string; type: RecordType }[] = []
  socket.on('message', (query, peer) => {
    const { name, type, end } = readQuestion(query)
    if (type === undefined) return
    asked.push({ name, type })
    const found = answer(name, type)
    if (found !== 'silent') socket.send(reply(query.subarray(0, end), type, found), peer.port, peer.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: () => new Promise(resolve => socket.close(() => resolve())),
  }
}

/**
 * Reads the question of a query. The question begins after the header of twelve bytes. It consists of labels, type and
 * class (RFC 1035 §4.1.2).
 */
function readQuestion(query: Buffer): { name: string; type: RecordType | undefined; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: types[query.readUInt16BE(at + 1)], end: at + 5 }
}

function reply(question: Buffer, type: RecordType, found: readonly string[] | 'nxdomain'): Buffer {
  const addresses = found === 'nxdomain' ? [] : found.map(address => ipaddr.parse(address))
  const wanted = addresses.filter(address => address.kind() === (type === 'A' ? 'ipv4' : 'ipv6'))
  const head = Buffer.from(question)
  head.writeUInt16BE(found === 'nxdomain' ? 0x8183 : 0x8180, 2)
  for (const [index, count] of [1, wanted.length, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * index)
  return Buffer.concat([head, ...wanted.map(address => record(type, address.toByteArray()))])
}

/** Returns a resource record. Its name is a pointer to the name in the question. */
function record(type: RecordType, bytes: number[]): Buffer {
  const code = type === 'A' ? 1 : 28
  return Buffer.from([0xc0, 12, 0, code, 0, 1, 0, 0, 0, 0, 0, bytes.length, ...bytes])
}
