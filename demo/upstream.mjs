// The demo's service behind the gateway: it says who the gateway told it is calling.
import { createServer } from 'node:http'

/** @param listen where; port 0 lets the system choose */
export async function startDemoUpstream(listen) {
  const server = createServer((request, response) => {
    request.resume()
    const user = request.headers['x-user-id']
    const answer = {
      service: 'demo',
      path: request.url,
      caller:
        user === undefined ? 'anonymous' : { user_id: Number(user), plan: request.headers['x-user-plan'] },
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject).listen(listen.port, listen.host, resolve)
  })
  return server
}
