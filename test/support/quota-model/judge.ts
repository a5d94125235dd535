// Checks the rules of quotas: compares the responses to uses with the quota records before and after the uses.
import { keyOf, type Records, type RowChange } from './records.ts'
import { type Option, periodOf } from './rules.ts'

/** A request and its response. */
export interface AnsweredUse {
  readonly userId: number
  readonly replica: number
  /** The ways in which the request may be counted. There are several while a plan or the configuration changes. */
  readonly options: readonly Option[]
  /** The status code; 0 if the connection failed. */
  readonly status: number
  /** The last member of `RateLimit-Policy` and of `RateLimit`, if this member describes a quota. */
  readonly policy: { readonly quota: string; readonly limit: number; readonly remaining: number } | undefined
  /** The body of a refusal. */
  readonly body: Readonly<Record<string, unknown>>
  /** The number of times that the request reached the service. */
  readonly forwarded: number
  /** The time in milliseconds from the request to the response. */
  readonly tookMs: number
}

export interface Evidence {
  readonly uses: readonly AnsweredUse[]
  readonly before: Records
  readonly after: Records
  /** The changes of quota records while the uses were sent: by SQL, or by an operator’s reset. */
  readonly changes: readonly RowChange[]
  /** Whether a store or a replica failed. If so, a use may also get a 503 or no response. */
  readonly isFaulty: boolean
}

export const invariants = {
  above: 'no more than the allowance passes in a period',
  refused: 'no use is refused while the record has room for it',
  unrecorded: 'each use that passes is recorded once, and each failed use at most once',
  response: 'each response is the one that the plan and the configuration require',
  waited: 'no use waits for the row of another user',
} as const

/**
 * A use that fails after this time is not reported. On a busy machine, the gateway may have reached a time limit:
 * 500 ms to connect to a store, or 900 ms to count.
 */
const timeoutMs = 400

export type Invariant = keyof typeof invariants

export interface Problem {
  readonly invariant: Invariant
  readonly text: string
}

/** The number of uses that may have been added to one record: at least `min`, at most `max`. */
interface Sum {
  min: number
  max: number
  /** The highest allowance that may have applied. */
  limit: number
}

interface Limited {
  readonly quota: string
  readonly cost: number
  readonly limit: number
  readonly key: string
}

export function judge(evidence: Evidence): Problem[] {
  const { uses, before, after, changes } = evidence
  // If midnight passed, a record may have started again at 0 without a change by SQL.
  if (before.today !== after.today) return []
  const sums = new Map<string, Sum>()
  const add = ({ key, limit }: Limited, min: number, max: number) => {
    const sum = sums.get(key) ?? { min: 0, max: 0, limit: 0 }
    sums.set(key, { min: sum.min + min, max: sum.max + max, limit: Math.max(sum.limit, limit) })
  }
  const problems = uses.flatMap(use => judgeUse(use, evidence, add))
  const keys = new Set([...before.keys, ...after.keys, ...sums.keys()])
  for (const key of keys) {
    const ends = segmentsOf(key, evidence)
    const sum = sums.get(key) ?? { min: 0, max: 0, limit: 0 }
    const counted = ends.reduce((total, { from, to }) => total + to - from, 0)
    const counts = `${counted} recorded, ${sum.min} passed, at most ${sum.max} possible`
    const during = changes.filter(change => change.key === key).map(change => JSON.stringify(change))
    if (counted < sum.min || counted > sum.max)
      problems.push({ invariant: 'unrecorded', text: `record ${key}: ${counts} ${during}` })
    for (const { from, to } of ends)
      if (to > from && to > sum.limit)
        problems.push({ invariant: 'above', text: `record ${key}: ${to} of ${sum.limit} used ${during}` })
  }
  return [...problems, ...judgeOrder(evidence)]
}

/**
 * Divides the time at the SQL changes of a record. Returns the used amount at the start and at the end of each segment.
 */
function segmentsOf(key: string, { before, after, changes }: Evidence): { from: number; to: number }[] {
  const segments: { from: number; to: number }[] = []
  let from = before.of(key).used
  for (const change of changes) {
    if (change.key !== key) continue
    segments.push({ from, to: change.before.used })
    from = change.after.used
  }
  return [...segments, { from, to: after.of(key).used }]
}

function limitedOf({ userId, options }: AnsweredUse): Limited[] {
  return options.flatMap(({ quota, cost, allowance }) =>
    typeof allowance === 'string'
      ? []
      : [{ quota, cost, limit: allowance.limit, key: keyOf(userId, quota, periodOf(allowance.limit)) }],
  )
}

function judgeUse(
  use: AnsweredUse,
  evidence: Evidence,
  add: (limited: Limited, min: number, max: number) => void,
): Problem[] {
  const { options, status, policy, body, forwarded } = use
  const problems: Problem[] = []
  const isWrong = (invariant: Invariant, why: string) =>
    problems.push({
      invariant,
      text: `${why}: ${status} for user ${use.userId} at replica ${use.replica}, forwarded ${forwarded} times, ${JSON.stringify({ policy, body, options })}`,
    })
  const limited = limitedOf(use)
  if (status !== 0 && forwarded !== (status === 200 ? 1 : 0)) isWrong('response', 'wrongly forwarded')
  if (status === 200) {
    const applied = limited.filter(({ quota, limit }) => policy?.quota === quota && policy.limit === limit)
    const costs = applied.map(({ cost }) => cost)
    if (applied[0] !== undefined) add(applied[0], Math.min(...costs), Math.max(...costs))
    else if (policy !== undefined || options.every(({ allowance }) => allowance !== 'unlimited'))
      isWrong('response', 'passed under no possible allowance')
  } else if (status === 429) {
    const applied = limited.find(
      ({ quota, cost, limit }) => body.quota === quota && body.cost === cost && body.limit === limit,
    )
    if (applied === undefined) isWrong('response', 'refused under no possible allowance')
    else {
      const { key, cost, limit } = applied
      const ends = [
        evidence.after.of(key),
        ...evidence.changes.filter(change => change.key === key).map(change => change.before),
      ]
      const isAhead = [evidence.before.of(key), ...ends].some(state => state.isAhead)
      if (!isAhead && ends.every(({ used }) => used + cost <= limit))
        isWrong('refused', `refused with ${ends.map(({ used }) => used)} used`)
      const told = Number(body.used)
      if (!isAhead && told + cost <= limit) isWrong('response', 'refused with a body that shows room')
      const word = periodOf(limit) === 'day' ? '/jour)' : '/mois)'
      if (!String(body.error).endsWith(word) || policy?.limit !== limit)
        isWrong('response', 'refused with wrong texts')
    }
  } else if (status === 403) {
    if (options.every(({ allowance }) => allowance !== 'none'))
      isWrong('response', 'refused a plan that may pass')
  } else if (hasFailed(use) && (evidence.isFaulty || use.tookMs >= timeoutMs)) {
    for (const each of limited) add(each, 0, each.cost)
  } else isWrong('response', 'unexpected status')
  return problems
}

function hasFailed({ status }: AnsweredUse): boolean {
  return status === 503 || status === 0
}

/**
 * Checks the used amounts that the responses show, if there were no failures and no changes. In ascending order, each
 * amount must be the previous amount plus the cost of the use.
 */
function judgeOrder({ uses, before, after, changes, isFaulty }: Evidence): Problem[] {
  if (isFaulty || changes.length > 0) return []
  if (uses.some(use => use.options.length > 1 || hasFailed(use))) return []
  const byKey = new Map<string, { use: AnsweredUse; used: number; cost: number; limit: number }[]>()
  for (const use of uses) {
    const [limited] = limitedOf(use)
    if (limited === undefined || use.policy === undefined || use.status !== 200) continue
    const { key, cost, limit } = limited
    byKey.set(key, [...(byKey.get(key) ?? []), { use, used: limit - use.policy.remaining, cost, limit }])
  }
  const problems: Problem[] = []
  for (const [key, passed] of byKey) {
    const { isAhead } = before.of(key)
    let { used } = before.of(key)
    if (isAhead)
      problems.push({ invariant: 'above', text: `record ${key}: a use passed, but the record is ahead` })
    for (const one of passed.sort((a, b) => a.used - b.used)) {
      used += one.cost
      if (one.used === used) continue
      const text = `record ${key}: a use of ${one.cost} shows ${one.used} used instead of ${used}`
      problems.push({ invariant: 'response', text })
    }
    if (used !== after.of(key).used)
      problems.push({
        invariant: 'unrecorded',
        text: `record ${key}: ${after.of(key).used} instead of ${used}`,
      })
  }
  return problems
}
