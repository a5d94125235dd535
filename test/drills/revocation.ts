// A revocation takes effect on every replica within 50 ms, or within 5 s if the notifications are lost.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { temporaryFolder } from '../support/processes.ts'
import { startDroppingRelay } from './dropping-relay.ts'
import { startLoad } from './load.ts'
import { type StallableRelay, startStallingRelay } from './relay.ts'
import { type Replica, startReplicas } from './replicas.ts'
import { type Asked, judge } from './revocation-verdict.ts'
import { setting } from './settings.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { type Stalls, watchStalls } from './stalls.ts'
import { ask, createSubjects, newPro, type Subject } from './subjects.ts'
import type { Watch } from './watch.ts'

const rounds = setting('REVOCATIONS', 200, 20)

/** The options of a series of revocations. */
interface Taking {
  readonly rounds: number
  /** The milliseconds for which the drill sends requests to each replica after a revocation. */
  readonly watchMs: number
  readonly before?: () => Promise<unknown>
  readonly after?: () => Promise<unknown>
}

interface Stage {
  readonly database: Pool
  readonly stalls: Stalls
  takeFrom(taking: Taking): Promise<Asked[]>
}

export async function revocation(watch: Watch): Promise<void> {
  await onStage(watch, undefined, async ({ takeFrom, database, stalls }) => {
    judge(watch, stalls, `${rounds} times`, await takeFrom({ rounds, watchMs: 120 }), 50)
    const terminated = await takeFrom({
      rounds: 10,
      watchMs: 1_500,
      before: () =>
        database.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'peage listen' and datname = current_database()`,
        ),
    })
    judge(watch, stalls, 'every listening backend terminated', terminated, 50)
  })
  // The drill tests two faults, because TCP behaves differently in each of them. If a relay holds back bytes, TCP has
  // already acknowledged them. If packets are dropped, TCP acknowledges nothing.
  await withoutFeed(watch, startStallingRelay, 'bytes to the listeners held back')
  await withoutFeed(watch, startDroppingRelay, 'packets to the listeners dropped')
}

async function withoutFeed(
  watch: Watch,
  startRelay: (target: string) => Promise<StallableRelay>,
  title: string,
): Promise<void> {
  let relay: StallableRelay | undefined
  const throughRelay = async (url: string) => {
    relay = await startRelay(url)
    return relay.url
  }
  try {
    await onStage(watch, throughRelay, async ({ takeFrom, stalls }) => {
      const dropped = await takeFrom({
        rounds: 3,
        watchMs: 6_000,
        before: async () => relay?.stall(),
        after: async () => {
          relay?.flow()
          await sleep(4_000)
        },
      })
      judge(watch, stalls, title, dropped, 5_000)
    })
  } finally {
    await relay?.stop()
  }
}

/** @param listenThrough returns the URL at which the replicas listen for notifications */
async function onStage(
  { say, expect }: Watch,
  listenThrough: ((url: string) => Promise<string>) | undefined,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder()
  const stalls = watchStalls(folder.path)
  const upstream = await startUpstream()
  try {
    const stage = await startReplicas({
      // The drill often sends a revoked API key, which counts as a bad key. So the rate limit of bad keys must be off.
      settings: 'auth: { rate_limits: { bad_keys: 0 } }',
      routing: `${serviceAt(upstream.port)}
routes:
  - { path: /public/small, upstream: service, plans: [pro] }`,
      env: stalls.env,
      ...(listenThrough === undefined ? {} : { listenThrough }),
    })
    const { database, replicas } = stage
    const { port } = replicas[0]
    try {
      const subjects = await createSubjects(port, database)
      const { headers } = await newPro(port, database, 'load')
      await sleep(1_000)
      const loads = replicas.map(replica => startLoad(replica.port, { perSecond: 150, headers }))
      await work({ database, stalls, takeFrom: taking => takeEach(subjects, replicas, taking) })
      const results = await Promise.all(loads.map(load => load.stop()))
      const failures = loads.flatMap(load => load.failures)
      const own = Math.max(...results.map(({ ownStall }) => ownStall))
      const p99 = results.map(result => result.p99.toFixed(1)).join(' and ')
      const done = loads.map(load => load.done).join(' and ')
      say(
        `${done} requests of another user, p99 ${p99} ms; the drill process was blocked for at most ${own.toFixed(0)} ms`,
      )
      expect(
        'no other user is refused',
        failures.length === 0,
        `${failures.length} ${[...new Set(failures)]}`,
      )
    } finally {
      await stage.stop()
    }
  } finally {
    await upstream.stop()
    await folder.remove()
  }
}

/**
 * In each round, revokes the access of all subjects at once. Then sends requests of each subject to all replicas every
 * 10 ms. At the end of each round, restores the access.
 */
async function takeEach(
  subjects: readonly Subject[],
  replicas: readonly Replica[],
  { rounds, watchMs, before, after }: Taking,
): Promise<Asked[]> {
  const all: Asked[] = []
  for (let round = 0; round < rounds; round += 1) {
    await before?.()
    await Promise.all(
      subjects.map(async subject => {
        await subject.take()
        all.push(...(await watchOne(subject, replicas, watchMs)))
        await subject.giveBack()
      }),
    )
    await after?.()
    // This loop waits until every replica has the restored subjects in its cache. Otherwise, the next round would not
    // test the cache.
    for (const subject of subjects) await Promise.all(replicas.map(replica => untilAllowed(replica, subject)))
  }
  return all
}

async function watchOne(
  { name, headers, before, after }: Subject,
  replicas: readonly Replica[],
  watchMs: number,
): Promise<Asked[]> {
  const committed = process.hrtime.bigint()
  const askAt = async (replica: Replica): Promise<Asked> => {
    const sent = process.hrtime.bigint()
    const { status } = await ask(replica.port, headers)
    return {
      subject: name,
      replica,
      isOld: status === before,
      isNew: status === after,
      sent,
      answered: process.hrtime.bigint(),
      committed,
    }
  }
  const asked: Promise<Asked>[] = []
  while (Number(process.hrtime.bigint() - committed) / 1e6 < watchMs) {
    asked.push(...replicas.map(askAt))
    await sleep(10)
  }
  return Promise.all(asked)
}

async function untilAllowed({ port }: Replica, { headers, before }: Subject): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if ((await ask(port, headers)).status === before) return
    await sleep(10)
  }
  throw new Error('the restored user is not accepted within 10 s')
}
