// Runs the shell blocks of one page in a separate clone.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Block } from './blocks.ts'
import { scriptOf } from './script.ts'

export interface Ran {
  /** The blocks that were not run, because the command after `if:` failed. */
  readonly unmet: readonly Block[]
  /** The page and line of the first failure, and the end of the output. Undefined if no command failed. */
  readonly failure: string | undefined
}

/** Time limit in milliseconds for all blocks of a page together. */
const PATIENCE = 240_000

export async function runPage(blocks: readonly Block[]): Promise<Ran> {
  const page = String(blocks[0]?.page)
  const work = mkdtempSync(join(tmpdir(), 'peage-docs-'))
  chmodSync(work, 0o755)
  const clone = join(work, 'clone')
  try {
    copyRepository(clone)
    const unmet = blocks.filter(({ condition }) => condition !== undefined && !holds(condition))
    const script = join(work, 'page.sh')
    writeFileSync(script, scriptOf(blocks.filter(block => !unmet.includes(block))))
    for (const { file, text } of blocks) if (file !== undefined) write(join(clone, file), text)
    const output = await shell({ work, clone, script })
    return { unmet, failure: output === undefined ? undefined : `${page}:${lineOf(work)}: ${output}` }
  } finally {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 })
  }
}

function copyRepository(clone: string): void {
  const { status, stderr } = spawnSync('git', ['clone', '-q', '--shared', '.', clone], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  symlinkSync(resolve('node_modules'), join(clone, 'node_modules'))
  cpSync('dist', join(clone, 'dist'), { recursive: true })
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${text}\n`)
}

function holds(condition: string): boolean {
  return spawnSync('sh', ['-c', condition], { stdio: 'ignore' }).status === 0
}

/** Runs the script of a page. @returns the end of the output if the script failed, otherwise `undefined` */
async function shell({ work, clone, script }: { work: string; clone: string; script: string }) {
  const prelude = resolve('test/docs/check/prelude.sh')
  const child = spawn('bash', ['-c', `work=${work}; . ${prelude}; . ${script}`], {
    cwd: clone,
    env: { PATH: process.env.PATH, HOME: work, LANG: 'C.UTF-8', TMPDIR: work },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      output = (output + chunk).slice(-4_000)
    })
  }
  const late = setTimeout(() => {
    output += `\nstill running after ${PATIENCE / 1_000} s`
    killGroup(child.pid)
  }, PATIENCE)
  const [code] = await once(child, 'exit')
  clearTimeout(late)
  killGroup(child.pid)
  return code === 0 ? undefined : output
}

/** Ends all processes that the page started. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All processes of the group have already ended.
  }
}

/** Returns the line of the first failure on the page, or `?` if the shell recorded no failure. */
function lineOf(work: string): string {
  const file = join(work, 'failed')
  if (!existsSync(file)) return '?'
  const [first = ''] = readFileSync(file, 'utf8').split('\n')
  const [caller = '?', line = '?', source] = first.split(' ')
  return source === 'page.sh' ? line : caller
}
