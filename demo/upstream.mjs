// The demo service behind the gateway. Its response contains the user ID and the plan from the headers of the gateway.
import { once } from 'node:events'
import { createServer } from 'node:http'

/** @param {{ host: string, port: number }} listen the address to listen on; port 0 selects a free port */
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
  server.listen(listen.port, listen.host)
  await once(server, 'listening')
  return server
}
