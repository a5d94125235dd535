// A relay from one address to another. An address is `host:port` or the path of a Unix socket. A Unix socket can
// connect two network namespaces.
import { connect, createServer, type ListenOptions, type NetConnectOpts } from 'node:net'

const [from = '', to = ''] = process.argv.slice(2)

function place(address: string): ListenOptions & NetConnectOpts {
  const [, host = '', port = ''] = /^([\d.]+):(\d+)$/.exec(address) ?? []
  return port === '' ? { path: address } : { host, port: Number(port) }
}

const server = createServer(client => {
  const upstream = connect(place(to))
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => {}).on('close', () => other.destroy())
    one.pipe(other)
  }
})
server.listen(place(from), () => {
  const address = server.address()
  process.send?.(typeof address === 'object' ? address?.port : address)
})
process.once('disconnect', () => process.exit())
