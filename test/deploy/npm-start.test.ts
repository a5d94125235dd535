// Tests that a gateway started with `npm start` returns the memory of password hashes to the system.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startProgram } from '../support/program.ts'
import { read } from './read.ts'

const mebibyte = 1024 * 1024

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'peage-npm-start-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Returns the resident memory of process `pid` in bytes (proc(5), `VmRSS`). */
async function residentMemory(pid: number): Promise<number> {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}

it('a gateway that was started with `npm start` returns the memory for password hashes to the system', async () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
  const command = 'node dist/cli.js start'
  expect(scripts.start.endsWith(command)).toBe(true)
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0', token: a-token-of-16-characters }
storage: { data_dir: '${join(folder, 'data')}' }
auth: { rate_limits: { login_failures: 0, login_failures_per_address: 0 }, hashing: { concurrency: 4 } }
`,
  )
  const script = scripts.start.replace(command, '"$@"')
  const gateway = await startProgram(file, {}, false, ['sh', '-c', script, 'npm start'])
  try {
    const login = () =>
      fetch(`${gateway.url}/api/v1/auth/login`, {
        method: 'POST',
        body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }),
      })
    const hash = async (count: number) => {
      for (let round = 0; round < count; round += 1) await Promise.all([login(), login(), login(), login()])
    }
    const before = await residentMemory(gateway.child.pid as number)
    await hash(6)
    const growth = (await residentMemory(gateway.child.pid as number)) - before
    // The script `npm start` sets environment variables. Without them, each of the four hash threads would keep 19 MiB.
    expect(growth).toBeLessThan(40 * mebibyte)
  } finally {
    gateway.child.kill('SIGTERM')
    await gateway.ended
  }
})
