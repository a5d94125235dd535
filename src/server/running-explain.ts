// Explains requests with the active configuration, one at a time, and hides the secrets of the configuration.
import type { AdminDependencies, ExplainQuestion } from '../admin/api/admin-endpoint.ts'
import type { ListedConfig } from '../admin/configuration-record.ts'
import type { Clock } from '../clock.ts'
import { parseListing } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'
import { createExplain, type Explain, toDocument, toExplainRequest } from '../explain/explain.ts'

/** @param active returns the active configuration, and its text with masked secrets */
export function createRunningExplain(active: () => ListedConfig, clock: Clock): AdminDependencies['explain'] {
  let explained: Config | undefined
  let explain: Explain | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function run(question: ExplainQuestion): Promise<object> {
    // The explainer is created at the first call, because most gateways never explain a request. `config` and `listing`
    // are read at the same time, because a reload may change both during the explanation. In a newer listing, the
    // secrets may be at other places, so the wrong values would be masked.
    const { config, listing } = active()
    if (explain === undefined || config !== explained) explain = await createExplain(config, clock)
    explained = config
    const explanation = await explain(toExplainRequest(question))
    const { headers, ...rest } = toDocument(explanation)
    const { routes } = config
    const index = routes.findIndex(({ name }) => name === explanation.route)
    const mask = (of: 'request' | 'response') => {
      const hidden = hiddenFields(listing, index, of)
      const { set, remove } = headers[of]
      const shown = Object.entries(set).map(([name, value]) => [
        name,
        hidden.has(name.toLowerCase()) ? '***' : value,
      ])
      return { set: Object.fromEntries(shown), remove }
    }
    return { ...rest, headers: { request: mask('request'), response: mask('response') } }
  }

  // Calls run one after another, because they share the stubs for stores and network.
  return question => {
    const answer = last.then(() => run(question))
    last = answer.catch(() => {})
    return answer
  }
}

/** Returns the names, in lower case, of the headers that a route sets to a secret value. */
function hiddenFields(
  listing: ListedConfig['listing'],
  route: number,
  of: 'request' | 'response',
): Set<string> {
  const prefix = `routes[${route}].headers.${of}.set`
  return new Set(
    (listing === undefined ? [] : parseListing(listing))
      .filter(({ path, value }) => value === '***' && path.startsWith(prefix))
      .map(({ path }) => nameIn(path.slice(prefix.length)).toLowerCase()),
  )
}

/** Returns the header name in a step of a path: `.X-Team` or `["X Team"]`. */
function nameIn(step: string): string {
  return step.startsWith('[') ? String(JSON.parse(step.slice(1, -1))) : step.slice(1)
}
