// Which refusals were answered and which decisions guards made while the suite ran: what no test reaches, none holds.
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { guardNames } from '../../src/config/active-guards.ts'
import { catalog } from '../../src/refusals/catalog.ts'

/** Where all test processes write what they reached, a line each; empty where nobody asks. */
let file = ''
const noted = new Set<string>()

/**
 * Notes from now on, in this process, the code of every refusal that a server answers.
 * @param into a file; empty to note nothing
 */
export function noteReached(into: string): void {
  if (file === into) return
  file = into
  noted.clear()
  subscribe('http.server.response.finish', message => {
    // `_header` is the head as it was sent, whoever wrote it and however.
    const { response } = message as { response: ServerResponse & { _header?: string } }
    const [, code] = /\r\nx-peage-error: (\w+)\r\n/i.exec(response._header ?? '') ?? []
    if (code !== undefined) note(`refusal ${code}`)
  })
}

/** Notes what the guards of a gateway have decided. @param admin its admin listener */
export async function noteDecisions(admin: string, token: string): Promise<void> {
  if (file === '') return
  const answer = await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  const decided = /^peage_guard_decisions_total\{guard="(\w+)",decision="(\w+)"\} (?!0$)/gm
  for (const [, guard, decision] of (await answer.text()).matchAll(decided))
    note(`guard ${guard} ${decision}`)
}

function note(reached: string): void {
  if (noted.has(reached)) return
  noted.add(reached)
  appendFileSync(file, `${reached}\n`)
}

/** Guards that need a store; rate limits go on in memory without one. */
const mayFail: readonly string[] = ['authenticate', 'free_daily']

/** Everything that a run of the whole suite reaches. */
export function reachable(): string[] {
  const decisions = guardNames.flatMap(name =>
    ['pass', 'refuse', ...(mayFail.includes(name) ? ['error'] : [])].map(
      decision => `guard ${name} ${decision}`,
    ),
  )
  return [...Object.keys(catalog).map(code => `refusal ${code}`), ...decisions]
}

/** @param from the file of `noteReached` */
export function unreached(from: string): string[] {
  const reached = new Set(readFileSync(from, 'utf8').split('\n'))
  return reachable().filter(one => !reached.has(one))
}
