// Records the refusals and guard decisions that tests reach. So a run can list the ones that no test reaches.
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { guardNames } from '../../src/config/active-guards.ts'
import { catalog } from '../../src/refusals/catalog.ts'

/** The file to which all test processes append lines. If empty, nothing is recorded. */
let file = ''
const noted = new Set<string>()

/**
 * From now on, records the error code of every refusal that a server in this process sends.
 * @param into the path of the file; an empty path records nothing
 */
export function noteReached(into: string): void {
  if (file === into) return
  file = into
  noted.clear()
  subscribe('http.server.response.finish', message => {
    // `_header` is the response head as sent, no matter which functions set the headers.
    const { response } = message as { response: ServerResponse & { _header?: string } }
    const [, code] = /\r\nx-peage-error: (\w+)\r\n/i.exec(response._header ?? '') ?? []
    if (code !== undefined) note(`refusal ${code}`)
  })
}

/** Records the decisions of a gateway's guards. @param admin the address of its admin listener */
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

/**
 * The guards that end with an error if a store fails. The other guards need no store. Rate limits are counted in memory
 * if the store fails.
 */
const mayFail: readonly string[] = ['authenticate', 'free_daily', 'quota']

/** Returns everything that a run of the whole suite must reach. */
export function reachable(): string[] {
  const decisions = guardNames.flatMap(name =>
    ['pass', 'refuse', ...(mayFail.includes(name) ? ['error'] : [])].map(
      decision => `guard ${name} ${decision}`,
    ),
  )
  return [...Object.keys(catalog).map(code => `refusal ${code}`), ...decisions]
}

/** Returns everything that no test has reached. @param from the file that `noteReached` wrote */
export function unreached(from: string): string[] {
  const reached = new Set(readFileSync(from, 'utf8').split('\n'))
  return reachable().filter(one => !reached.has(one))
}
