// Sends attacks to an arena, checks the invariants for each, and counts the outcomes.
import { type Arena, callersOf, filledIn } from './arena.ts'
import type { Attack } from './attack.ts'
import { violationsOfSeen, violationsOfShot } from './judge.ts'
import { fire, isForwarded } from './shot.ts'
import { createWitness } from './witness.ts'

export interface Counts {
  /** The number of requests that the upstream received. */
  upstream: number
  readonly byKind: Record<string, number>
  readonly byStatus: Record<string, number>
}

export interface Breach {
  readonly violations: readonly string[]
  readonly kind: string
  /** The sent bytes in latin1, with real credentials, but without the sentinel request after the attack. */
  readonly bytes: string
}

export interface Range {
  readonly counts: Counts
  /** Sends an attack. @returns the violated invariants */
  fire(attack: Attack): Promise<string[]>
  breach(attack: Attack, violations: readonly string[]): Breach
  /** Must be called after all attacks. Checks late requests, requests from unknown addresses, and daily uses. */
  settle(): Promise<Breach[]>
}

export function openRange(arena: Arena): Range {
  const witness = createWitness(arena)
  const fired = new Map<string, Attack>()
  const counts: Counts = { upstream: 0, byKind: {}, byStatus: {} }
  const { host: upstreamHost } = new URL(arena.upstream.url)
  const secrets = new Set([...arena.owners.keys()].map(name => arena.placeholders.get(name) ?? name))
  let serial = 0

  const breach = (attack: Attack, violations: readonly string[]) => ({
    violations,
    kind: attack.kind,
    bytes: filledIn(arena, attack.text),
  })

  return {
    counts,
    breach,
    async fire(attack) {
      const shot = await fire(arena, attack, serial++)
      fired.set(shot.from, attack)
      const { seen, forwarded } = await witness.of(shot.from)
      const known = { callers: callersOf(arena, attack.text), secrets, upstreamHost }
      const violations = [
        ...seen.flatMap(request => violationsOfSeen(request, known)),
        ...violationsOfShot(shot, seen),
      ]
      if (seen.length > forwarded)
        violations.push(
          `I3 the upstream received ${seen.length} requests, but the gateway forwarded ${forwarded}`,
        )
      count(counts.byKind, attack.kind)
      for (const answer of shot.answers) {
        count(counts.byStatus, isForwarded(answer) ? `${answer.status} upstream` : String(answer.status))
      }
      if (shot.answers.length === 0) count(counts.byStatus, 'no response')
      counts.upstream += seen.length
      return violations
    },
    async settle() {
      // Waits a fixed time for late requests, because no event shows that the last request has arrived.
      await new Promise(resolve => setTimeout(resolve, 500))
      const breaches: Breach[] = []
      for (const [from, { seen }] of witness.rest()) {
        const attack = fired.get(from) ?? { kind: `from ${from}`, text: '', cut: 0 }
        const known = { callers: callersOf(arena, attack.text), secrets, upstreamHost }
        const violations = seen.flatMap(request => violationsOfSeen(request, known))
        if (!fired.has(from) && seen.length > 0)
          violations.push(`a request from an unknown address: ${seen[0]?.url}`)
        if (violations.length > 0) breaches.push(breach(attack, violations))
        counts.upstream += seen.length
      }
      const spent = await usesSpentForNothing()
      if (spent !== undefined) breaches.push(breach({ kind: 'uses', text: '', cut: 0 }, [spent]))
      return breaches
    },
  }

  async function usesSpentForNothing(): Promise<string | undefined> {
    const [row] = await arena.gateway.sql<{ daily_usage: number }>(
      'select daily_usage from users where id = $1',
      [arena.free.id],
    )
    const used = Number(row?.daily_usage)
    const { forwarded, unknown } = witness.uses
    if (used >= forwarded && used <= forwarded + unknown) return undefined
    return `${used} daily uses were spent on ${forwarded} forwarded requests and ${unknown} requests whose client left`
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
