// Tests the messages of `peage check`. A case in `golden/*.txt` is a configuration, followed by the output of `check`
// in lines with `> `. A line with `## ` is a title, and `$ NAME=value` sets an environment variable. To update the
// files, run `npx vitest run test/config/golden.test.ts -u` and review the diff.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { linesOf, warningLinesOf } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { files } from './golden-files.ts'

const folder = new URL('golden/', import.meta.url)

function check(configuration: string, env: Record<string, string>): string[] {
  const readFile = (path: string) => {
    const text = path === 'gateway.yaml' ? configuration : files[path]
    if (text === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return text
  }
  const loaded = loadConfig({ file: 'gateway.yaml', env, cores: 4, readFile, toServe: true })
  const lines = 'problems' in loaded ? linesOf(loaded) : [...warningLinesOf(loaded.warnings), 'ok']
  return lines.map(line => line.replace(/^gateway\.yaml:/, ''))
}

/** Returns the text of a golden file. The lines with `> ` are replaced by the current output of `check`. */
function checked(text: string): string {
  let env: Record<string, string> = {}
  let configuration: string[] = []
  const checkedLines = text.split('\n').flatMap((line, index, lines) => {
    if (line.startsWith('>')) {
      if (lines[index + 1]?.startsWith('>')) return []
      const printed = check(configuration.join('\n'), env)
      env = {}
      configuration = []
      return printed.map(one => `> ${one}`)
    }
    const [, name, value = ''] = /^\$ (\w+)=(.*)$/.exec(line) ?? []
    if (name !== undefined) env[name] = value
    else if (configuration.length > 0 || !/^(## .*)?$/.test(line)) configuration.push(line)
    return [line]
  })
  if (configuration.length > 0) throw new Error(`expected a line with > after: ${configuration.join('\n')}`)
  return checkedLines.join('\n')
}

it.each(readdirSync(folder))('check prints the lines in golden/%s', async name => {
  const now = checked(readFileSync(new URL(name, folder), 'utf8'))
  await expect(now).toMatchFileSnapshot(`golden/${name}`)
  expect(now.split('\n').filter(line => line.startsWith('>') && line.includes('hunter2'))).toEqual([])
})
