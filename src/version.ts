// What package.json says of the program.
import { readFileSync } from 'node:fs'

export function packageFacts(): { version: string; description: string } {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
}
