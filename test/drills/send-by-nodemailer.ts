// Sends mails with nodemailer over ten connections. Reports the duration in seconds to its parent process. The mails
// look like mails of the gateway.
import { createTransport } from 'nodemailer'

const { hostname, port } = new URL(process.argv[2] ?? '')
const count = Number(process.argv[3])
const transport = createTransport({
  pool: true,
  maxConnections: 10,
  maxMessages: 50,
  host: hostname,
  port: Number(port),
  ignoreTLS: true,
})
const text =
  'Bonjour,\n\nLe mot de passe de votre compte vient d’être changé.\n\nSi ce n’était pas vous, répondez à ce message.\n'

let next = 0
const begun = performance.now()
await Promise.all(
  Array.from({ length: 20 }, async () => {
    while (next < count) {
      next += 1
      await transport.sendMail({
        from: { name: '', address: 'drill@example.com' },
        to: { name: '', address: `alone-${next}@drill.test` },
        subject: 'Votre mot de passe a été changé',
        text,
      })
    }
  }),
)
process.send?.((performance.now() - begun) / 1_000)
transport.close()
process.disconnect()
