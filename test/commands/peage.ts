// Runs `peage` commands inside the test process, with real files in a temporary folder.
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
  /** Writes a file in the temporary folder. @returns the name of the file */
  write(name: string, text: string | Uint8Array): string
}

/** The text of the repository's `gateway.yaml`. */
export const committed = readFileSync(new URL('../../gateway.yaml', import.meta.url), 'utf8')

/**
 * Creates a temporary folder and returns functions that work in this folder. `afterAll` removes the folder, so call
 * this function at the top level or in a `describe`.
 */
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

/** Creates a temporary folder. The folder is removed after the suite. */
export function emptyFolder(): string {
  const cwd = mkdtempSync(join(tmpdir(), 'peage-command-'))
  afterAll(() => rmSync(cwd, { recursive: true, force: true }))
  return cwd
}

interface Around {
  env?: Record<string, string> | undefined
  stdin?: Io['stdin']
  /** If set, this stream receives standard output, and the returned `stdout` is empty. */
  stdout?: Writable
  /** If set, this stream receives standard error, and the returned `stderr` is empty. */
  stderr?: Io['stderr']
  /** Called after each write to standard error. `soFar` is everything that was written until then. */
  onError?: ((soFar: string) => void) | undefined
  openFolder?: Io['openFolder']
}

export async function runIn(cwd: string, words: readonly string[], around: Around = {}): Promise<Printed> {
  const { env = {}, stdin = Readable.from([]), onError, openFolder } = around
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
  const stderr = around.stderr ?? into('stderr')
  const exit = await run(words, { env, cwd, stdin, stdout, stderr, openFolder })
  return { exit, ...printed }
}

/** Returns the JSON that a successful command printed. Fails the test if the command failed. */
export function json({ exit, stdout, stderr }: Printed) {
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
  return JSON.parse(stdout)
}
