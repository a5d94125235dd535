// Tests quotas with random uses and changes on real gateways. The drill `quotas` runs more steps, with failing stores.

import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { randomRules, yamlOf } from '../support/quota-model/rules.ts'
import { type QuotaStage, runQuotaModel } from '../support/quota-model/run.ts'
import { startUseService, type UseService } from '../support/quota-model/sender.ts'
import { createRandom } from '../support/random.ts'
import { describeOnBothSetups } from '../support/setups.ts'

const steps = 500
const seed = Number(process.env.QUOTA_SEED ?? Date.now() % 1_000_000)

describeOnBothSetups('quotas under random uses and changes', setup => {
  let stores: Stores
  let service: UseService
  let stage: QuotaStage
  const gateways: TestGateway[] = []
  const random = createRandom(seed)
  beforeAll(async () => {
    stores = await setup.open()
    service = await startUseService()
    let yaml = yamlOf(randomRules(0, random), service.url)
    // Only one gateway can use a database in memory.
    const count = stores.postgres === '' ? 1 : 2
    for (let i = 0; i < count; i += 1) gateways.push(await startGateway(yaml, stores))
    const [first] = gateways as [TestGateway]
    const users = []
    for (let i = 0; i < 5; i += 1) {
      const { id, access } = await newUser(first)
      users.push({ id, token: access })
    }
    stage = {
      replicas: gateways,
      adminToken: first.adminToken,
      service,
      users,
      query: first.sql,
      async configure(rules) {
        const next = yamlOf(rules, service.url)
        for (const { file } of gateways)
          await writeFile(file, (await readFile(file, 'utf8')).replace(yaml, next))
        yaml = next
        await Promise.all(gateways.map(({ reload }) => reload()))
        for (const { refused } of gateways) expect(refused).toEqual([])
      },
      ...(count === 1 ? {} : { lockRecords: userId => lockRecords(first, userId) }),
    }
  })
  afterAll(async () => {
    await Promise.all(gateways.map(gateway => gateway.stop()))
    service?.close()
    if (stores !== undefined) await setup.drop(stores)
  })

  it(`exceed no allowance and lose no use in ${steps} random steps (QUOTA_SEED=${seed})`, async () => {
    const { problems, history, statuses } = await runQuotaModel(stage, random, steps)
    expect(problems, `seed ${seed}\n${history.join('\n')}`).toEqual([])
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 429]))
  }, 120_000)
})

/** Locks the quota records of a user. @returns a function that releases the lock */
async function lockRecords({ backing }: TestGateway, userId: number): Promise<() => Promise<void>> {
  let release = () => {}
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  let done: Promise<void> = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    done = backing.database
      .transaction(async tx => {
        await tx.query('select from quota_usage where user_id = $1 for update', [userId])
        resolve()
        await released
      })
      .catch(reject)
  })
  return async () => {
    release()
    await done
  }
}
