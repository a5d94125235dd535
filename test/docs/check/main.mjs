// `npm run docs:check`: clones the last commit, installs its dependencies, and runs the blocks of the pages there.
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
 * Returns a command that runs the program in its own network namespace. There, all ports are free and the network
 * cannot be reached. If the system does not permit namespaces, the ports 8080, 8081, 9000, 5432 and 6379 must be free.
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
 * If the command line names a page, returns the option that selects this page. An example of such a command line is
 * `npm run docs:check -- docs/http-api.md`.
 */
function filter() {
  const [page] = process.argv.slice(2)
  return page === undefined ? [] : ['-t', page]
}
