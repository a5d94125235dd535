// Tests that docs/metrics-and-logs.md lists all log messages of the gateway and all alerts of deploy/prometheus.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { rowsStarting } from './read-tables.ts'

const page = 'metrics-and-logs.md'
const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => readFileSync(`src/${name}`, 'utf8'))
  .join('\n')

/** The messages in the tables of the page. In a message, `…` stands for a variable part or for the rest of the text. */
const documented = rowsStarting(/^`/, page)
  .filter(([, level = '']) => /^(30|40|50)$/.test(level))
  .flatMap(([messages = '']) => [...messages.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message))

const calls =
  /(?:(?:logger|log|always)\.(?:info|warn|error)\(\s*(?:\{[^}]*\}|\w+),|failureLog\()\s*(['`])(.+?)\1/gs

describe(`docs/${page}`, () => {
  it('contains only log messages that are in the source code', () => {
    expect(documented.length).toBeGreaterThan(50)
    const missing = documented.filter(
      message => !message.split('…').every(part => source.includes(part.trim())),
    )
    expect(missing).toEqual([])
  })

  it('contains every log message of the source code', () => {
    const logged = [...source.matchAll(calls)].map(([, , message = '']) => message)
    expect(logged.length).toBeGreaterThan(25)
    // The tables need not list these two messages. The message `admin` is described in another section. The other
    // message is a warning about the configuration, which `peage check` prints too.
    const elsewhere = ['admin', '$' + '{path}: $' + '{message}']
    const patterns = documented.map(message => {
      const parts = message.split('…').map(part => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      return new RegExp(`^${parts.join('.*')}$`)
    })
    const unlisted = logged.filter(
      message => !elsewhere.includes(message) && !patterns.some(pattern => pattern.test(message)),
    )
    expect(unlisted).toEqual([])
  })

  it('contains all alerts and no other alert, each with its severity and a link to its section in the runbook', () => {
    const { groups } = parse(readFileSync('deploy/prometheus/alerts.yml', 'utf8'))
    const rules = groups[0].rules.map(
      ({ alert, labels, annotations }: Record<string, Record<string, string>>) =>
        `[\`${alert}\`](${annotations?.runbook?.replace('docs/', '')}) ${labels?.severity}`,
    )
    const listed = rowsStarting(/^\[`Peage/, page).map(([alert, severity]) => `${alert} ${severity}`)
    expect(listed).toEqual(rules)
  })
})
