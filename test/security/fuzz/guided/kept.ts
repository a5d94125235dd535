// Reads and writes the inputs kept from previous runs. Together, the inputs reach all code that these runs reached.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the kept inputs, relative to the root of the repository. */
const folder = 'test/security/corpus/guided'

/** Returns the kept inputs. Each character is one byte. */
export function readKept(target: string): string[] {
  const file = join(folder, `${target}.json`)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as string[]) : []
}

/** Writes the inputs as JSON in ASCII, one per line. */
export function writeKept(target: string, inputs: readonly string[]): void {
  const lines = [...inputs].sort().map(input => JSON.stringify(input).replace(/[\x7f-\xff]/g, escaped))
  writeFileSync(join(folder, `${target}.json`), `[\n${lines.join(',\n')}\n]\n`)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
