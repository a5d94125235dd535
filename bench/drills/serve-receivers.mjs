// Receivers of webhooks, each on a port of its own, in a process of their own: they note what comes, signatures verified.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { Webhook } from 'standardwebhooks'

/**
 * @typedef {{ kind: import('./alert-kinds.mjs').Kind, secret: string }} Receiver
 * @typedef {object} Receipt
 * @property {number} receiver index of the receiver
 * @property {string} id `webhook-id`
 * @property {number | undefined} number of the alert; nothing where the signature is not the user's
 * @property {bigint} at on the clock that all processes of a machine share
 */

/** Milliseconds that a receiver works on what it got. */
const work = 100

const certificate = half =>
  readFileSync(new URL(`../../test/support/certificates/test-only-first.${half}.pem`, import.meta.url))

/** @type {Receipt[]} */
const receipts = []

/** @param {Receiver} receiver */
async function serve({ kind, secret }, index) {
  const webhook = new Webhook(secret)
  const server = createServer(
    { cert: certificate('cert'), key: certificate('key') },
    async (request, response) => {
      const at = process.hrtime.bigint()
      let body = ''
      for await (const chunk of request) body += chunk
      receipts.push({
        receiver: index,
        id: String(request.headers['webhook-id']),
        number: verified(request, body),
        at,
      })
      if (kind === 'hanging') return
      setTimeout(() => response.writeHead(kind === 'failing' ? 500 : 204).end(), work)
    },
  )

  function verified({ headers }, body) {
    try {
      return webhook.verify(body, headers).data.number
    } catch {
      return undefined
    }
  }

  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  return server.address().port
}

process.once('message', async receivers => {
  const ports = await Promise.all(receivers.map(serve))
  process.on('message', () => process.send?.(receipts))
  process.send?.(ports)
})
