// Runs random uses and changes of quotas against real gateways, and checks the invariants of quotas after each step.
import { setTimeout as sleep } from 'node:timers/promises'
import { oneOf, type Random } from '../random.ts'
import { type AnsweredUse, judge, type Problem } from './judge.ts'
import {
  deleteRecords,
  keyOf,
  type Query,
  type RowChange,
  readRecords,
  type Update,
  updateRecords,
} from './records.ts'
import {
  optionOf,
  periodOf,
  planNames,
  quotas,
  type Rules,
  randomRoute,
  randomRules,
  unknownPlan,
} from './rules.ts'
import { createSender, type Sender, type UseService } from './sender.ts'

export interface QuotaStage {
  /** The URLs of the gateways and of their admin listeners. A drill may replace a gateway. */
  readonly replicas: readonly { readonly url: string; readonly admin: string }[]
  readonly adminToken: string
  readonly service: UseService
  /** The users, at first with the plan `free`. The last user sends no uses, and is only a marker for `settle`. */
  readonly users: readonly { readonly id: number; readonly token: string }[]
  readonly query: Query
  /** Resolves when every gateway uses the configuration. */
  configure(rules: Rules): Promise<void>
  /** Locks a user's records until the returned function is called. Absent if the database has only one connection. */
  lockRecords?(userId: number): Promise<() => Promise<void>>
}

/** Breaks a store or a gateway, and repairs it. `run` resolves when everything runs again. */
export interface Fault {
  readonly name: string
  /** Whether Postgres runs during the fault. If so, the model also changes records or plans during the fault. */
  readonly hasPostgres: boolean
  run(): Promise<void>
}

export interface Report {
  steps: number
  /** The number of responses by status code. */
  readonly statuses: Map<number, number>
  /** The milliseconds from the commit of each change until every replica had received it. */
  readonly settledMs: number[]
  readonly problems: readonly Problem[]
  /** The last steps before the problem. */
  readonly history: readonly string[]
}

interface User {
  readonly id: number
  readonly token: string
  /** The stored plan. During a change, the old plan and the new plan. */
  plans: string[]
}

interface Use {
  readonly user: User
  readonly route: number
  readonly replica: number
}

interface Change {
  readonly title: string
  /**
   * Makes the change. Makes the change. Returns the quota records that it changed, with their states before and after.
   */
  run(): Promise<RowChange[]>
  /** Called when every replica has received the change. */
  onSettled?(): void
}

/** How long uses may still fail after a fault, while stores and gateways recover. */
const recoveryMs = 5_000
const rememberedSteps = 40

/**
 * Runs the model until the first problem.
 * @param steps the number of uses and changes
 * @param faults each fault runs once; the faults are distributed evenly over the steps
 */
export async function runQuotaModel(
  stage: QuotaStage,
  random: Random,
  steps: number,
  faults: readonly Fault[] = [],
): Promise<Report> {
  const { replicas, query, service } = stage
  const users: User[] = stage.users.slice(0, -1).map(user => ({ ...user, plans: ['free'] }))
  const marker = stage.users.at(-1) ?? { id: 0, token: '' }
  const ask: Sender = createSender(stage)
  const history: string[] = []
  const problems: Problem[] = []
  const report: Report = { steps: 0, statuses: new Map(), settledMs: [], problems, history }
  /** For each replica and record, the used amount that the replica last read. */
  const lastRead = new Map<string, number>()
  let rules = [randomRules(1, random)]
  let records = await readRecords(query)
  let [markers, recoveredAt] = [0, Number.NEGATIVE_INFINITY]

  const note = (text: string) => {
    history.push(text)
    if (history.length > rememberedSteps) history.shift()
  }
  const randomUse = (): Use => ({
    user: oneOf(users, random),
    route: randomRoute(random),
    replica: random(replicas.length),
  })

  /**
   * Waits until every replica has received all changes. Changes arrive in the order of their commits. So when a new
   * plan of the marker arrives, all earlier changes have arrived too.
   */
  async function settle(): Promise<void> {
    const plan = `marker${++markers}`
    await query('update users set plan = $1 where id = $2', [plan, marker.id])
    const begun = performance.now()
    for (const replica of replicas.keys()) {
      while ((await ask(replica, '/who', marker.token)).plan !== plan) {
        if (performance.now() - begun > 15_000) throw new Error(`replica ${replica} does not receive changes`)
        await sleep(2)
      }
    }
    report.settledMs.push(performance.now() - begun)
  }

  async function send({ user, route, replica }: Use): Promise<AnsweredUse> {
    const begun = performance.now()
    const answer = await ask(replica, `/use/${route}`, user.token)
    const tookMs = performance.now() - begun
    const options = user.plans.flatMap(plan => rules.map(each => optionOf(each, plan, route)))
    report.statuses.set(answer.status, (report.statuses.get(answer.status) ?? 0) + 1)
    return { userId: user.id, replica, options, tookMs, ...answer }
  }

  /** Sends uses concurrently, makes the change at the same time, and judges the responses. */
  async function burst(
    uses: readonly Use[],
    change?: Change,
    sending: (uses: readonly Use[]) => Promise<AnsweredUse[]> = all => Promise.all(all.map(send)),
    isFaulty = performance.now() - recoveredAt < recoveryMs,
  ): Promise<AnsweredUse[]> {
    note(
      `${uses.map(({ user, route, replica }) => `user ${user.id} route ${route} replica ${replica}`).join(', ')} ${change?.title ?? ''}`,
    )
    const before = records
    const [answers, changes] = await Promise.all([sending(uses), change?.run() ?? []])
    const after = await readRecords(query)
    records = after
    report.steps += answers.filter(({ status }) => status !== 0).length + (change === undefined ? 0 : 1)
    problems.push(...judge({ uses: answers, before, after, changes, isFaulty }))
    if (change !== undefined || uses.length !== 1) lastRead.clear()
    else for (const answer of answers) judgeLastRead(answer, before.of)
    return answers
  }

  /**
   * Checks the used amount that a response shows. It must not be less than the amount that this replica last read. If
   * the period of the record starts within the next 24 hours, no uses may be left.
   */
  function judgeLastRead(answer: AnsweredUse, before: (key: string) => { isAhead: boolean }): void {
    const { userId, replica, policy, status, body } = answer
    if (policy === undefined) return
    const key = keyOf(userId, policy.quota, periodOf(policy.limit))
    const name = `${replica} ${key}`
    const used = status === 200 ? policy.limit - policy.remaining : Number(body.used)
    const text = `replica ${replica}, record ${key}: ${JSON.stringify(body)} with ${policy.remaining} left`
    if (used < (lastRead.get(name) ?? 0))
      problems.push({ invariant: 'response', text: `${text}, although ${lastRead.get(name)} were read` })
    const left = before(key).isAhead ? 0 : Math.max(0, policy.limit - used)
    if (policy.remaining !== left)
      problems.push({ invariant: 'response', text: `${text} instead of ${left}` })
    lastRead.set(name, used)
  }

  function changeOfRecords(user: User): Change {
    const quota = random(3) === 0 ? undefined : oneOf(quotas, random)
    const kind = random(9)
    if (kind < 2)
      return { title: `delete records of user ${user.id}`, run: () => deleteRecords(query, user.id, quota) }
    const updates: Update[] = [
      'endPeriod',
      'endPeriod',
      'endPeriod',
      'halve',
      'moveAhead',
      'moveAhead',
      'moveFarAhead',
    ]
    const update = updates[kind - 2] ?? 'halve'
    return {
      title: `${update} ${quota} of user ${user.id}`,
      run: () => updateRecords(query, user.id, quota, update),
    }
  }

  /** @param replica if given, its admin API makes half of the changes; otherwise, SQL makes all changes */
  function changeOfPlan(user: User, replica?: number): Change {
    const configured = planNames.filter(name => rules.every(({ plans }) => plans.has(name)))
    const isByAdmin = replica !== undefined && random(2) === 0
    const plan = isByAdmin || random(8) > 0 ? oneOf(configured, random) : unknownPlan
    return {
      title: `plan ${plan} of user ${user.id} ${isByAdmin ? `at replica ${replica}` : 'by SQL'}`,
      async run() {
        user.plans.push(plan)
        if (isByAdmin) await operate(replica, 'PATCH', `${user.id}`, { plan })
        else await query('update users set plan = $1 where id = $2', [plan, user.id])
        return []
      },
      onSettled() {
        user.plans = [plan]
      },
    }
  }

  async function operate(replica: number, method: string, path: string, body?: object): Promise<void> {
    const { status } = await fetch(`${replicas[replica]?.admin}/admin/v1/users/${path}`, {
      method,
      headers: { authorization: `Bearer ${stage.adminToken}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (status !== 200) throw new Error(`${method} ${path} failed with ${status}`)
  }

  function reload(): Change {
    const next = randomRules((rules[0] as Rules).number + 1, random)
    return {
      title: `reload ${JSON.stringify([...next.plans])} ${JSON.stringify(next.routes)}`,
      async run() {
        rules.push(next)
        await stage.configure(next)
        return []
      },
      onSettled() {
        rules = [next]
      },
    }
  }

  async function settled(uses: readonly Use[], change: Change): Promise<void> {
    await burst(uses, change)
    await settle()
    change.onSettled?.()
  }

  /** Checks that a replica uses a new plan at once, if an operator has changed the plan at this replica. */
  async function changePlanAt(user: User, replica: number): Promise<void> {
    const change = changeOfPlan(user, replica)
    await burst([], change)
    if (change.title.endsWith('by SQL')) await settle()
    change.onSettled?.()
    await burst([{ ...randomUse(), user, replica }])
    await settle()
  }

  /**
   * Checks that a replica counts from 0 at once, if an operator has reset the usage at this replica. No use may run
   * during the reset.
   */
  async function resetAt(user: User, replica: number): Promise<void> {
    const quota = random(3) === 0 ? undefined : oneOf(quotas, random)
    await burst([], {
      title: `reset ${quota ?? 'everything'} of user ${user.id} at replica ${replica}`,
      async run() {
        const { keys, of } = records
        await operate(replica, 'POST', `${user.id}/reset-usage`, quota === undefined ? undefined : { quota })
        const reset = keys.filter(key => key.startsWith(`${user.id} ${quota ?? ''}`))
        return reset.map(key => ({ key, before: of(key), after: { used: 0, isAhead: false } }))
      },
    })
    await burst([{ ...randomUse(), user, replica }])
    await settle()
  }

  /** Checks that the uses of other users get responses while the records of one user are locked. */
  async function lockOne(lockRecords: NonNullable<QuotaStage['lockRecords']>): Promise<void> {
    const locked = oneOf(users, random)
    // Every third use is by the locked user, so the same batches contain locked rows and other rows.
    const uses = Array.from({ length: 12 }, (_, index) => ({
      ...randomUse(),
      ...(index % 3 === 0 ? { user: locked } : {}),
    }))
    const sending = async () => {
      const release = await lockRecords(locked.id)
      const waiting = uses.filter(({ user }) => user === locked).map(send)
      try {
        const others = await Promise.all(uses.filter(({ user }) => user !== locked).map(send))
        if (others.some(({ status }) => status === 503))
          problems.push({ invariant: 'waited', text: `the records of user ${locked.id} were locked` })
        return [...others, ...(await Promise.all([...waiting, release()])).filter(each => each !== undefined)]
      } finally {
        await release()
      }
    }
    note(`lock the records of user ${locked.id}`)
    await burst(uses, undefined, sending, true)
  }

  /** Sends uses without a pause during a fault. If Postgres runs, also changes records or plans. */
  async function underFault(fault: Fault): Promise<void> {
    // Without this reset, most uses would be refused.
    for (const { id } of users)
      await burst([], { title: `reset user ${id}`, run: () => deleteRecords(query, id) })
    await settle()
    let isOver = false
    const user = oneOf(users, random)
    const other = fault.hasPostgres ? [changeOfRecords(user), changeOfPlan(user)][random(2)] : undefined
    const sending = async () => {
      const answers: AnsweredUse[] = []
      const client = async () => {
        while (!isOver) {
          answers.push(await send(randomUse()))
          await sleep(5)
        }
      }
      await Promise.all(Array.from({ length: 4 }, client))
      return answers
    }
    const change = {
      title: `${fault.name} ${other?.title ?? ''}`,
      async run() {
        try {
          await sleep(50)
          const [changes] = await Promise.all([other?.run() ?? [], fault.run()])
          for (const replica of replicas.keys()) await untilServing(replica)
          await sleep(300)
          return changes
        } finally {
          isOver = true
        }
      },
    }
    await burst([], change, sending, true)
    recoveredAt = performance.now()
    await settle()
    other?.onSettled?.()
  }

  async function untilServing(replica: number): Promise<void> {
    const begun = performance.now()
    while ((await ask(replica, '/who', marker.token)).status !== 200) {
      if (performance.now() - begun > 15_000) throw new Error(`replica ${replica} does not recover`)
      await sleep(20)
    }
  }

  async function step(): Promise<void> {
    const kind = random(100)
    const use = randomUse()
    const several = () => Array.from({ length: 2 + random(10) }, randomUse)
    if (kind < 50) await burst([use])
    else if (kind < 63) await burst(several())
    else if (kind < 70) await settled(random(2) === 0 ? [] : several(), changeOfRecords(use.user))
    else if (kind < 73) await resetAt(use.user, use.replica)
    else if (kind < 78) await settled(several(), changeOfPlan(use.user, use.replica))
    else if (kind < 83) await changePlanAt(use.user, use.replica)
    else if (kind < 85) await settled(random(2) === 0 ? [] : several(), reload())
    else if (kind < 89 && stage.lockRecords !== undefined) await lockOne(stage.lockRecords)
    // Eight uses of one user can exhaust a quota. The gateway then refuses further uses from memory.
    else for (let i = 0; i < 8; i += 1) await burst([{ ...use, route: randomRoute(random) }])
  }

  await stage.configure(rules[0] as Rules)
  await settle()
  const waitingFaults = [...faults]
  while (report.steps < steps && problems.length === 0) {
    const due = steps * (1 - (waitingFaults.length + 1) / (faults.length + 1))
    const [fault] = waitingFaults
    if (fault !== undefined && report.steps > due) {
      waitingFaults.shift()
      await underFault(fault)
    } else await step()
    service.forget()
  }
  return report
}
