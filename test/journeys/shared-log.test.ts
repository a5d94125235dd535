// Several processes log to one pipe. All lines arrive whole, and the lines of each process stay in order.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Compiled, compile } from '../support/compiled.ts'

let program: Compiled
beforeAll(async () => {
  program = await compile('test/support/log-lines.ts')
})
afterAll(() => program?.remove())

/** Lets two processes write to one pipe, and returns their lines. The pipe is read slowly, so it is often full. */
async function linesOfTwo(count: number): Promise<string[]> {
  const script = '"$0" "$1" a "$2" "$3" & "$0" "$1" b "$2" "$3" & wait'
  // Both processes start to write at this time, so that they write simultaneously.
  const start = String(Date.now() + 2_000)
  const child = spawn('sh', ['-c', script, process.execPath, program.file, String(count), start], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout) {
    chunks.push(chunk)
    if (chunks.length % 10 === 0) await sleep(5)
  }
  if (child.exitCode === null) await once(child, 'exit')
  return Buffer.concat(chunks).toString().split('\n').slice(0, -1)
}

it('lines of two processes never mix, even if the pipe is full', async () => {
  const count = 20_000
  const said = (await linesOfTwo(count)).map(line => JSON.parse(line) as Record<string, string>)
  for (const name of ['a', 'b']) {
    const own = said.filter(line => line.name === name)
    expect(own.map(({ number }) => Number(number))).toEqual(
      Array.from({ length: count }, (_, index) => index),
    )
    expect(own.filter(({ fill }) => !/^(a+|b+)$/.test(String(fill)) || fill?.[0] !== name)).toEqual([])
  }
  // If the two processes had written one after the other, their lines would hardly alternate. So this check proves that
  // they wrote at the same time.
  const turns = said.filter((line, index) => index > 0 && line.name !== said[index - 1]?.name).length
  expect(turns).toBeGreaterThan(20)
})

it.each([
  ['stalls', 'sleep 20'],
  ['has ended', 'true'],
])('process.exit ends a process, even if the reader of its log %s', async (_, reader) => {
  const script = `("$0" "$1" a 5000 0 exit; echo "status $?" >&2) | ${reader}`
  const child = spawn('sh', ['-c', script, process.execPath, program.file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  try {
    const [status] = (await once(child.stderr, 'data', { signal: AbortSignal.timeout(15_000) })) as [Buffer]
    expect(status.toString()).toBe('status 0\n')
  } finally {
    process.kill(-(child.pid as number), 'SIGKILL')
  }
})
