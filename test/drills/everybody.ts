// One alert to 100,000 pro users: stored and answered within 2 s, also while the previous ones are being delivered.
import { createUsers, emit, newSecret } from './alerts.ts'
import { startReplicas } from './replicas.ts'
import type { Watch } from './watch.ts'

const users = 100_000

export async function alertEverybody({ say, expect }: Watch): Promise<void> {
  const stage = await startReplicas({ settings: 'webhooks: { allow_private_networks: true }' })
  try {
    const secret = newSecret()
    // No receiver listens. Half of the users share one, as a chat service's users do; the others have their own.
    const webhooks = Array.from({ length: users }, (_, i) => {
      const receiver = i % 2 === 0 ? '127.0.0.2:1' : `127.1.${(i >> 8) & 0xff}.${i & 0xff}:${1 + (i >> 16)}`
      return { url: `https://${receiver}/alerts`, receiver, secret }
    })
    await createUsers(stage.database, webhooks)
    for (const nth of ['first', 'second', 'third']) {
      const port = stage.replicas[0]?.admin ?? 0
      const { status, deliveries, took } = await emit(port, { type: 'drill.everybody', data: {} })
      expect(
        `${nth} alert to ${users} users is answered within 2 s`,
        status === 202 && deliveries === users && took < 2_000,
        `${took.toFixed(0)} ms, status ${status}, ${deliveries} deliveries`,
      )
    }
    const { rows } = await stage.database.query('select count(*) from webhook_deliveries where attempts > 0')
    say(`${rows[0]?.count} of them were tried meanwhile`)
  } finally {
    await stage.stop()
  }
}
