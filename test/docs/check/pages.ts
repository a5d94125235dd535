// Every page that is read on its own: README and its like, and docs/.
import { readdirSync } from 'node:fs'

/** From the repository's root, where tests run. */
export function pages(): string[] {
  const tops = readdirSync('.').filter(name => name.endsWith('.md'))
  const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.md'))
  return [...tops, ...docs.map(name => `docs/${name}`)].sort()
}
