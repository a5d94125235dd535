// The command line, run as a function on real files in a folder of its own.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { afterAll, expect } from 'vitest'
import type { Io } from '../../src/commands/io.ts'
import { run } from '../../src/commands/run.ts'

export interface Printed {
  exit: number
  stdout: string
  stderr: string
}

export interface Bench {
  peage(words: readonly string[], env?: Record<string, string>): Promise<Printed>
  /** @returns its name */
  write(name: string, text: string | Uint8Array): string
}

/** The configuration that comes with the repository. */
export const committed = readFileSync(new URL('../../gateway.yaml', import.meta.url), 'utf8')

/** To be called where tests are declared. */
export function commandLine(): Bench {
  const cwd = emptyFolder()
  return {
    peage: (words, env) => runIn(cwd, words, { env }),
    write(name, text) {
      writeFileSync(join(cwd, name), text)
      return name
    },
  }
}

/** Removed after the suite. */
export function emptyFolder(): string {
  const cwd = mkdtempSync(join(tmpdir(), 'peage-command-'))
  afterAll(() => rmSync(cwd, { recursive: true, force: true }))
  return cwd
}

interface Around {
  env?: Record<string, string> | undefined
  stdin?: Io['stdin']
  /** Where standard output goes, if not into what is returned. */
  stdout?: Writable
  /** Told all that was said so far on standard error. */
  onError?: ((soFar: string) => void) | undefined
}

export async function runIn(cwd: string, words: readonly string[], around: Around = {}): Promise<Printed> {
  const { env = {}, stdin = Readable.from([]), onError } = around
  const printed = { stdout: '', stderr: '' }
  const into = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        printed[name] += chunk
        if (name === 'stderr') onError?.(printed.stderr)
        done()
      },
    })
  const stdout = around.stdout ?? into('stdout')
  const exit = await run(words, { env, cwd, stdin, stdout, stderr: into('stderr') })
  return { exit, ...printed }
}

/** What a command that was to end well has printed. */
export function json({ exit, stdout, stderr }: Printed) {
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
  return JSON.parse(stdout)
}
