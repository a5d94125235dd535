// An upstream that fails. The path of the request selects the kind of failure.
import { type AddressInfo, createServer, type Socket } from 'node:net'

const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n'
const block = Buffer.alloc(1 << 20, 'x')

const faults: Record<string, (socket: Socket, size: number) => void> = {
  well: socket => socket.write(`${head}Content-Length: 2\r\n\r\nok`),
  hangs: () => {},
  resets: socket => socket.resetAndDestroy(),
  'resets-within': socket => {
    socket.write(`${head}Content-Length: 1000\r\n\r\nhalf`)
    setTimeout(() => socket.resetAndDestroy(), 20)
  },
  garbage: socket => socket.write('\x00\x01 no HTTP at all\r\n\r\n'),
  'garbage-within': socket => socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`),
  'closes-half': socket => socket.end(`${head}Content-Length: 1000\r\n\r\nhalf`),
  'closes-unanswered': socket => socket.end(),
  'stands-still': socket => socket.write(`${head}Content-Length: 1000\r\n\r\nhalf`),
  drips: socket => {
    socket.write(`${head}Content-Length: 10\r\n\r\n`)
    let left = 10
    const timer = setInterval(() => {
      socket.write('x')
      left -= 1
      if (left === 0) clearInterval(timer)
    }, 1_000)
    socket.on('close', () => clearInterval(timer))
  },
  'much-of-it': (socket, size) => {
    socket.write(`${head}Content-Length: ${size}\r\n\r\n`)
    let left = size
    const fill = () => {
      while (left > 0) {
        const next = left < block.length ? block.subarray(0, left) : block
        left -= next.length
        if (!socket.write(next)) return
      }
    }
    socket.on('drain', fill)
    fill()
  },
}

const server = createServer(socket => {
  socket.on('error', () => {})
  let received = ''
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
    if (!received.includes('\r\n\r\n')) return
    const [, fault = '', size = '0'] = /^GET \/public\/([a-z-]+)(?:\?(\d+))? /.exec(received) ?? []
    received = ''
    faults[fault]?.(socket, Number(size))
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit())
