// A TCP relay whose target can be changed: connections that are open stay where they are, as behind a name that moves.
import { connect, createServer } from 'node:net'

let { port } = new URL(process.argv[2])

const server = createServer(client => {
  const upstream = connect(Number(port), '127.0.0.1')
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ]) {
    from.setNoDelay(true)
    from.on('error', () => {}).on('close', () => to.destroy())
    from.pipe(to)
  }
})
server.listen(0, '127.0.0.1', () => process.send?.(server.address().port))
process.on('message', message => {
  port = message
})
process.once('disconnect', () => process.exit())
