// Explains requests by the running configuration, one at a time, without its secrets (CONTRACT §13).
import type { AdminDependencies, ExplainQuestion } from '../admin/api/admin-endpoint.ts'
import type { Clock } from '../clock.ts'
import type { ListedValue } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'
import { createExplain, type Explain, toDocument, toExplainRequest } from '../explain/explain.ts'

/** @param listed the running configuration, masked */
export function createRunningExplain(
  current: () => Config,
  clock: Clock,
  listed: () => readonly ListedValue[],
): AdminDependencies['explain'] {
  let config: Config | undefined
  let explain: Explain | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function run(question: ExplainQuestion): Promise<object> {
    // Not before the first question, because most gateways are never asked.
    if (explain === undefined || config !== current()) explain = createExplain(current(), clock)
    config = current()
    const explanation = await explain(toExplainRequest(question))
    const { headers, ...rest } = toDocument(explanation)
    const { routes } = config
    const index = routes.findIndex(({ name }) => name === explanation.route)
    const mask = (of: 'request' | 'response') => {
      const hidden = hiddenFields(listed(), index, of)
      const { set, remove } = headers[of]
      const shown = Object.entries(set).map(([name, value]) => [
        name,
        hidden.has(name.toLowerCase()) ? '***' : value,
      ])
      return { set: Object.fromEntries(shown), remove }
    }
    return { ...rest, headers: { request: mask('request'), response: mask('response') } }
  }

  // All questions share the stubs.
  return question => {
    const answer = last.then(() => run(question))
    last = answer.catch(() => {})
    return answer
  }
}

/** The fields that a route sets to something secret, in lower case. */
function hiddenFields(
  values: readonly ListedValue[],
  route: number,
  of: 'request' | 'response',
): Set<string> {
  const prefix = `routes[${route}].headers.${of}.set`
  return new Set(
    values
      .filter(({ path, value }) => value === '***' && path.startsWith(prefix))
      .map(({ path }) => nameIn(path.slice(prefix.length)).toLowerCase()),
  )
}

/** `.X-Team` or `["X Team"]`. */
function nameIn(step: string): string {
  return step.startsWith('[') ? String(JSON.parse(step.slice(1, -1))) : step.slice(1)
}
