// Tests `peage init` inside the test process, in a temporary folder.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runProgram } from '../support/program.ts'
import { committed, emptyFolder, runIn } from './peage.ts'

/** Removes the first line, which contains the path of the schema. */
const afterFirstLine = (text: string) => text.slice(text.indexOf('\n'))

describe('peage init', () => {
  it('writes the sample to gateway.yaml, and the commands `check`, `test` and `explain` accept this file', async () => {
    const folder = emptyFolder()
    expect(await runIn(folder, ['init'])).toEqual({
      exit: 0,
      stdout: 'wrote gateway.yaml. Add your upstreams and routes, then run peage check and peage start.\n',
      stderr: '',
    })
    expect(afterFirstLine(readFileSync(join(folder, 'gateway.yaml'), 'utf8'))).toBe(afterFirstLine(committed))
    expect(await runIn(folder, ['check'])).toEqual({
      exit: 0,
      stdout: 'gateway.yaml: ok (4 routes, 1 upstream)\n',
      stderr: '',
    })
    expect((await runIn(folder, ['test'])).exit).toBe(0)
    expect((await runIn(folder, ['explain', 'GET', '/health'])).exit).toBe(0)
  })

  it('writes to the given file, and prints the commands to check the file and start the gateway', async () => {
    const folder = emptyFolder()
    mkdirSync(join(folder, 'conf'))
    expect(await runIn(folder, ['init', 'conf/staging.yaml'])).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining(
        'run peage check -c conf/staging.yaml and peage start -c conf/staging.yaml',
      ),
    })
    expect((await runIn(folder, ['check', '-c', 'conf/staging.yaml'])).exit).toBe(0)
  })

  it('refers to the schema by a file URL if the schema is outside the folder', async () => {
    const folder = emptyFolder()
    await runIn(folder, ['init'])
    const [, schema = ''] = /\$schema=(\S+)/.exec(readFileSync(join(folder, 'gateway.yaml'), 'utf8')) ?? []
    expect(schema).toMatch(/^file:\/\//)
    expect(readFileSync(fileURLToPath(schema), 'utf8')).toContain('"title"')
  })

  it('does not overwrite a file, a folder or a dangling link', async () => {
    const folder = emptyFolder()
    writeFileSync(join(folder, 'gateway.yaml'), 'mine: true\n')
    mkdirSync(join(folder, 'folder'))
    symlinkSync(join(folder, 'nowhere.yaml'), join(folder, 'link.yaml'))
    for (const name of ['gateway.yaml', 'folder', 'link.yaml', '']) {
      expect(await runIn(folder, ['init', name])).toEqual({
        exit: 1,
        stdout: '',
        stderr: `error: ${name} already exists. Nothing was written. Choose another file name.\n`,
      })
    }
    expect(readFileSync(join(folder, 'gateway.yaml'), 'utf8')).toBe('mine: true\n')
    expect(existsSync(join(folder, 'nowhere.yaml'))).toBe(false)
  })

  it('writes the file only once if several commands start at the same time', async () => {
    const folder = emptyFolder()
    const ended = await Promise.all([1, 2, 3, 4].map(() => runProgram(['init'], folder)))
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 1, 1, 1])
    expect(afterFirstLine(readFileSync(join(folder, 'gateway.yaml'), 'utf8'))).toBe(afterFirstLine(committed))
  })

  it('reports why a file cannot be written, and exits with 1', async () => {
    const folder = emptyFolder()
    writeFileSync(join(folder, 'file'), '')
    const said = async (name: string) => (await runIn(folder, ['init', name])).stderr
    expect(await said('away/gateway.yaml')).toBe(
      `error: cannot write away/gateway.yaml: the folder ${join(folder, 'away')} does not exist\n`,
    )
    expect(await said('file/gateway.yaml')).toBe(
      `error: cannot write file/gateway.yaml: ${join(folder, 'file')} is not a folder\n`,
    )
    // Even root cannot create a file in /proc/self.
    expect(await said('/proc/self/gateway.yaml')).toMatch(
      /^error: cannot write \/proc\/self\/gateway\.yaml: /,
    )
    expect((await runIn(folder, ['init', 'away/gateway.yaml'])).exit).toBe(1)
  })

  it('refuses more than one file with exit code 2', async () => {
    expect((await runIn(emptyFolder(), ['init', 'a', 'b'])).exit).toBe(2)
  })
})
