// A Chromium asked over its debugging protocol, without what a driver of browsers leaves in the page that it looks at.
import { once } from 'node:events'
import { WebSocket } from 'ws'

/**
 * @param {number} port of `--remote-debugging-port`
 * @param {'page' | 'browser'} whom the first page, or the browser
 * @param {string[]} methods called one after the other
 * @returns {Promise<any[]>} what each answered
 */
export async function askBrowser(port, whom, methods) {
  const at = async path => (await fetch(`http://127.0.0.1:${port}/json/${path}`)).json()
  const { webSocketDebuggerUrl } =
    whom === 'browser' ? await at('version') : (await at('list')).find(({ type }) => type === 'page')
  const socket = new WebSocket(webSocketDebuggerUrl)
  await once(socket, 'open')
  const answers = []
  try {
    for (const [id, method] of methods.entries()) {
      const answered = new Promise(resolve => {
        socket.on('message', data => {
          const message = JSON.parse(String(data))
          if (message.id === id) resolve(message.result)
        })
      })
      socket.send(JSON.stringify({ id, method }))
      answers.push(await answered)
    }
  } finally {
    socket.close()
  }
  return answers
}
