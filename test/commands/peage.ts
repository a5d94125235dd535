// The command line, run as a function on real files in a folder of its own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { afterAll } from 'vitest'
import { run } from '../../src/commands/run.ts'

export interface Bench {
  peage(
    words: readonly string[],
    env?: Record<string, string>,
  ): Promise<{ exit: number; stdout: string; stderr: string }>
  /** @returns its name */
  write(name: string, text: string | Uint8Array): string
}

/** To be called where tests are declared. */
export function commandLine(): Bench {
  const cwd = mkdtempSync(join(tmpdir(), 'peage-command-'))
  afterAll(() => rmSync(cwd, { recursive: true }))
  return {
    async peage(words, env = {}) {
      const printed = { stdout: '', stderr: '' }
      const into = (name: 'stdout' | 'stderr') =>
        new Writable({
          write(chunk, _encoding, done) {
            printed[name] += chunk
            done()
          },
        })
      const exit = await run(words, {
        env,
        cwd,
        stdin: Readable.from([]),
        stdout: into('stdout'),
        stderr: into('stderr'),
      })
      return { exit, ...printed }
    },
    write(name, text) {
      writeFileSync(join(cwd, name), text)
      return name
    },
  }
}
