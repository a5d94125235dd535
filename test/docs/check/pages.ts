// Lists the Markdown pages in the repository's root and under docs/.
import { readdirSync } from 'node:fs'

/** Returns paths relative to the repository's root, which is the working directory of tests. */
export function pages(): string[] {
  const tops = readdirSync('.').filter(name => name.endsWith('.md'))
  const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.md'))
  return [...tops, ...docs.map(name => `docs/${name}`)].sort()
}
