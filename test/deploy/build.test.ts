// Tests that a build does not disturb programs that run from `dist`. For example, `npm pack` can build while the tests
// run.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const at = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

it.each([
  ['scripts/build-program.mjs', 'dist/worker.js'],
  ['scripts/build-console.mjs', 'dist/console/manifest.json'],
])(
  'during a build, %s replaces %s in one step, so that the file is never missing or incomplete',
  async (script, name) => {
    const before = { content: readFileSync(at(name), 'utf8'), inode: statSync(at(name)).ino }
    const build = spawn(process.execPath, [at(script)], { cwd: at('.'), stdio: 'ignore' })
    const ended = once(build, 'exit')
    while (build.exitCode === null) {
      expect(readFileSync(at(name), 'utf8')).toBe(before.content)
      await sleep(1)
    }
    expect(await ended).toEqual([0, null])
    expect(statSync(at(name)).ino).not.toBe(before.inode)
  },
)
