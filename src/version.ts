// Reads the program's version and description from package.json.
import { readFileSync } from 'node:fs'

export function packageFacts(): { version: string; description: string } {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
}
