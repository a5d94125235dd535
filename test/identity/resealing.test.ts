// Tests that stored secrets are encrypted again with the new secret, while other processes read and write them.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createKeyStore, privateJwks } from '../../src/identity/keys/key-store.ts'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { reseal } from '../../src/identity/resealing.ts'
import { createSealedColumn } from '../../src/identity/sealed-column-store.ts'
import { createSealer } from '../../src/identity/sealer.ts'
import type { Database } from '../../src/storage/database.ts'
import { createWebhookSecrets, secretColumns } from '../../src/webhooks/webhook-secret.ts'
import { describeOverSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

const old = await createSealer('the secret before')
const both = await createSealer('the secret of now', 'the secret before')
const now = await createSealer('the secret of now')
const another = await createSealer('an unknown secret')

describeOverSetups('the encryption with a new secret', ({ openDatabase: open }) => {
  let database: Database
  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    await database.query('delete from signing_keys')
    await database.query('delete from webhooks')
    await database.query('delete from users')
  })

  const keys = () => createSealedColumn(database, privateJwks)
  const webhooks = () => secretColumns.map(column => createSealedColumn(database, column))
  const stored = () =>
    database.query<{ kid: string; private_jwk: string }>('select * from signing_keys order by kid')

  async function key(seal: (text: string, kid: string) => string): Promise<{ kid: string; text: string }> {
    const made = await generatePrivateJwk('ES256')
    await createKeyStore(database).add(made.kid, seal(made.text, made.kid))
    return made
  }
  /** Stores a user with a webhook whose secret is encrypted. @returns the user's id */
  async function webhook(secret: string, sealer = old): Promise<number> {
    const id = await addUser(database)
    await database.query(
      `insert into webhooks (user_id, url, receiver, secret) values ($1, 'https://example.com', 'example.com:443', $2)`,
      [id, createWebhookSecrets(sealer).seal(secret, id)],
    )
    return id
  }

  it('includes all signing keys and webhook secrets, and does not change their plain texts', async () => {
    const made = [await key(old.seal), await key(text => text), await key(now.seal)]
    expect(await reseal([keys()], both)).toEqual({ resealed: 2, already: 1, unreadable: [] })
    for (const { kid, text } of made) {
      const row = (await stored()).find(each => each.kid === kid)
      expect(now.open(String(row?.private_jwk), kid)).toBe(text)
    }

    const id = await webhook('whsec_one')
    expect(await reseal(webhooks(), both)).toEqual({ resealed: 1, already: 0, unreadable: [] })
    const [row] = await database.query<{ secret: string }>('select secret from webhooks')
    expect(createWebhookSecrets(now).unseal(String(row?.secret), id)).toBe('whsec_one')

    const before = createWebhookSecrets(old).seal('whsec_zero', id)
    await database.query('update webhooks set secret_before = $1, secret_before_until = now()', [before])
    expect(await reseal(webhooks(), both)).toEqual({ resealed: 1, already: 1, unreadable: [] })
    const [next] = await database.query<{ secret_before: string }>('select secret_before from webhooks')
    expect(createWebhookSecrets(now).unseal(String(next?.secret_before), id)).toBe('whsec_zero')
  })

  it('writes nothing if it runs a second time', async () => {
    await key(old.seal)
    await reseal([keys()], both)
    const rows = await stored()
    expect(await reseal([keys()], both)).toEqual({ resealed: 0, already: 1, unreadable: [] })
    expect(await stored()).toEqual(rows)
  })

  it('reports rows that neither the new nor the old secret can decrypt, and does not change these rows', async () => {
    const { kid } = await key(another.seal)
    await key(old.seal)
    const id = await webhook('whsec_one', another)
    const before = (await stored()).find(row => row.kid === kid)
    expect(await reseal([keys()], both)).toEqual({ resealed: 1, already: 0, unreadable: [kid] })
    expect((await stored()).find(row => row.kid === kid)).toEqual(before)
    expect(await reseal(webhooks(), both)).toEqual({ resealed: 0, already: 0, unreadable: [String(id)] })
  })

  it('encrypts the new value of a row that changes at the same time, and ignores a row that is deleted', async () => {
    const id = await webhook('whsec_before')
    const gone = await webhook('whsec_gone')
    const [column] = webhooks()
    if (column === undefined) return expect.unreachable()
    let raced = 0
    const racing = {
      ...column,
      async replace(userId: string, from: string, to: string) {
        raced += 1
        if (raced === 1) {
          await database.query('update webhooks set secret = $2 where user_id = $1', [
            id,
            createWebhookSecrets(old).seal('whsec_meanwhile', id),
          ])
          await database.query('delete from webhooks where user_id = $1', [gone])
        }
        return column.replace(userId, from, to)
      },
    }
    expect(await reseal([racing], both)).toEqual({ resealed: 1, already: 0, unreadable: [] })
    expect(raced).toBe(3)
    const rows = await database.query<{ user_id: number; secret: string }>('select * from webhooks')
    expect(rows).toHaveLength(1)
    expect(createWebhookSecrets(now).unseal(String(rows[0]?.secret), id)).toBe('whsec_meanwhile')
  })

  it('processes each row once, even if the rows do not fit into one batch', async () => {
    await database.query(
      `insert into users (email, password_hash) select 'many' || n || '@example.com', 'x' from generate_series(1, 1001) n`,
    )
    await database.query(
      `insert into webhooks (user_id, url, receiver, secret)
       select id, 'https://example.com', 'example.com:443', 'whsec_' || id from users`,
    )
    expect(await reseal(webhooks(), both)).toEqual({ resealed: 1001, already: 0, unreadable: [] })
    expect(await database.query("select 1 from webhooks where secret not like 'sealed.v1.%'")).toEqual([])
  })
})
