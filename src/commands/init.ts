// Defines `peage init`, which writes the sample configuration but never overwrites a file.
import { closeSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Command } from 'commander'
import type { Io } from './io.ts'
import { print } from './print.ts'

/** The sample and the schema are next to `src/` and `dist/`, in a clone and in the installed package. */
const SAMPLE = new URL('../../gateway.yaml', import.meta.url)
const SCHEMA = new URL('../../gateway.schema.json', import.meta.url)

export function initCommand(io: Io): Command {
  return new Command('init')
    .description('Write a commented sample configuration; never overwrites a file')
    .argument('[file]', 'file to write', 'gateway.yaml')
    .action(async (name: string) => {
      const file = resolve(io.cwd, name)
      writeNew(file, name)
      const flag = name === 'gateway.yaml' ? '' : ` -c ${name}`
      await print(io.stdout, [
        `wrote ${name}. Add your upstreams and routes, then run peage check${flag} and peage start${flag}.\n`,
      ])
    })
}

/** @throws Error with a message for the operator if the file exists or cannot be written */
function writeNew(file: string, name: string): void {
  try {
    const text = sampleIn(realpathSync(dirname(file)))
    // With `wx`, the call creates the file, and fails if the file exists. So if two processes run at once, one of them
    // fails instead of overwriting the file.
    const handle = openSync(file, 'wx')
    try {
      writeFileSync(handle, text)
    } catch (error) {
      // If the disk is full, the file is incomplete. It is removed, because it would block the next attempt.
      rmSync(file, { force: true })
      throw error
    } finally {
      closeSync(handle)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new Error(`${name} already exists. Nothing was written. Choose another file name.`)
    throw new Error(`cannot write ${name}: ${reasonOf(error, dirname(file))}`)
  }
}

/**
 * Returns the sample for a file in `folder`. Its `$schema` line, which editors read, contains the path or URL of the
 * schema.
 */
function sampleIn(folder: string): string {
  const schema = fileURLToPath(SCHEMA)
  const path = relative(folder, schema)
  // If the schema is below the folder (in `node_modules`), a relative path works in every clone of the project.
  // Otherwise, for example after a global install, the line contains a `file:` URL, which works only on this machine.
  const isBelow = !path.startsWith('..') && !isAbsolute(path) && !/\s/.test(path)
  const named = isBelow ? `./${path.replaceAll('\\', '/')}` : pathToFileURL(schema).href
  return readFileSync(SAMPLE, 'utf8').replace('$schema=./gateway.schema.json', () => `$schema=${named}`)
}

function reasonOf(error: unknown, folder: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOENT':
      return `the folder ${folder} does not exist`
    case 'ENOTDIR':
      return `${folder} is not a folder`
    case 'EACCES':
    case 'EPERM':
      return `this user has no write access to ${folder}`
    case 'EROFS':
      return `the file system of ${folder} is read-only`
    case 'ENOSPC':
    case 'EDQUOT':
      return `the disk of ${folder} is full`
    default:
      return message
  }
}
