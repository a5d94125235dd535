// A TCP relay that can stop passing bytes on without a word, as a network does that drops packets.
import { connect, createServer } from 'node:net'

const { hostname, port } = new URL(process.argv[2])
const sockets = new Set()
let isStalled = false

function pass(to, bytes) {
  if (isStalled) to.held.push(bytes)
  else to.write(bytes)
}

const server = createServer(client => {
  const upstream = connect(Number(port), hostname)
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ]) {
    sockets.add(from)
    from.held = []
    from.on('data', bytes => pass(to, bytes)).on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
  }
})
server.listen(0, '127.0.0.1', () => process.send?.(server.address().port))

process.on('message', message => {
  isStalled = message === 'stall'
  if (isStalled) return
  for (const socket of sockets) for (const bytes of socket.held.splice(0)) socket.write(bytes)
})
process.once('disconnect', () => process.exit())
