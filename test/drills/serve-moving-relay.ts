// A TCP relay whose target can change. Open connections stay at the old target. This is the same as when a DNS name
// gets a new address.
import { type AddressInfo, connect, createServer } from 'node:net'

let port = Number(new URL(process.argv[2] ?? '').port)

const server = createServer(client => {
  const upstream = connect(port, '127.0.0.1')
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.setNoDelay(true)
    from.on('error', () => {}).on('close', () => to.destroy())
    from.pipe(to)
  }
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('message', message => {
  port = Number(message)
})
process.once('disconnect', () => process.exit())
