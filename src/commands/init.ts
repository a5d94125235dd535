// `peage init`: writes the sample configuration, never over an existing file.
import { closeSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Command } from 'commander'
import type { Io } from './io.ts'
import { print } from './print.ts'

/** Both lie beside `src/` and `dist/`, in a clone and in the installed package. */
const SAMPLE = new URL('../../gateway.yaml', import.meta.url)
const SCHEMA = new URL('../../gateway.schema.json', import.meta.url)

export function initCommand(io: Io): Command {
  return new Command('init')
    .description('write a commented sample configuration, where there is no file yet')
    .argument('[file]', 'where to', 'gateway.yaml')
    .action(async (name: string) => {
      const file = resolve(io.cwd, name)
      writeNew(file, name)
      const flag = name === 'gateway.yaml' ? '' : ` -c ${name}`
      await print(io.stdout, [
        `wrote ${name}: name your upstreams and routes in it, then run peage check${flag} and peage start${flag}\n`,
      ])
    })
}

/** @throws Error with a sentence for the operator if the name is taken or the file cannot be written */
function writeNew(file: string, name: string): void {
  try {
    const text = sampleIn(realpathSync(dirname(file)))
    // `wx` checks and creates in one step: of two concurrent runs, one fails because the file exists.
    const handle = openSync(file, 'wx')
    try {
      writeFileSync(handle, text)
    } catch (error) {
      // On a full disk, half a file would block the next attempt.
      rmSync(file, { force: true })
      throw error
    } finally {
      closeSync(handle)
    }
  } catch (error) {
    throw new Error(`${name} is not written: ${reasonOf(error, dirname(file))}`)
  }
}

/** The sample, with its `$schema` line for editors adjusted so that the schema is found from the folder. */
function sampleIn(folder: string): string {
  const schema = fileURLToPath(SCHEMA)
  const path = relative(folder, schema)
  // Below the folder a relative path is valid in every clone; elsewhere (a global install), a URL on this machine.
  const isBelow = !path.startsWith('..') && !isAbsolute(path) && !/\s/.test(path)
  const named = isBelow ? `./${path.replaceAll('\\', '/')}` : pathToFileURL(schema).href
  return readFileSync(SAMPLE, 'utf8').replace('$schema=./gateway.schema.json', () => `$schema=${named}`)
}

function reasonOf(error: unknown, folder: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'EEXIST':
      return 'there is something of that name already, and it is left as it is'
    case 'ENOENT':
      return `there is no folder ${folder}`
    case 'ENOTDIR':
      return `${folder} is no folder`
    case 'EACCES':
    case 'EPERM':
      return `this user may not write to ${folder}`
    case 'EROFS':
      return `the file system of ${folder} is read-only`
    case 'ENOSPC':
    case 'EDQUOT':
      return `the disk of ${folder} is full`
    default:
      return message
  }
}
