// `npm run docs:check`: clones the last commit, installs the dependencies, and runs the pages' blocks in the clone.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../../..', import.meta.url))
const work = mkdtempSync(join(tmpdir(), 'peage-docs-check-'))
const clone = join(work, 'clone')
let status = 1
try {
  /** @type {[program: string, words: string[], cwd: string][]} */
  const steps = [
    ['git', ['clone', '-q', repository, clone], '.'],
    ['npm', ['ci', '--no-audit', '--no-fund'], clone],
    [...alone('npx', ['vitest', 'run', '--config', 'test/docs/check/vitest.config.ts', ...filter()]), clone],
  ]
  for (const [program, words, cwd] of steps) {
    status = spawnSync(program, words, { cwd, stdio: 'inherit' }).status ?? 1
    if (status !== 0) break
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
process.exitCode = status === 0 ? 0 : 1

/**
 * Returns a command that runs the program in its own network namespace. In this namespace, all ports are free, and no
 * other host can be reached. If the system does not permit namespaces, the command runs the program without one. The
 * ports 8080, 8081, 9000, 5432 and 6379 must then be free.
 * @param {string} program @param {string[]} words @returns {[string, string[]]}
 */
function alone(program, words) {
  const inside = 'ip link set lo up && exec "$@"'
  const wrapped = ['--net', 'sh', '-c', inside, 'sh', program, ...words]
  const canBe =
    spawnSync('unshare', ['--net', 'sh', '-c', 'ip link set lo up'], { stdio: 'ignore' }).status === 0
  return canBe ? ['unshare', wrapped] : [program, words]
}

/**
 * Returns the option of the test runner that selects one page. The page is the argument of this script, for example in
 * `npm run docs:check -- docs/http-api.md`. Without an argument, returns no option.
 */
function filter() {
  const [page] = process.argv.slice(2)
  return page === undefined ? [] : ['-t', page]
}
