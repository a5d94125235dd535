// If the reader of the log stalls, log lines wait in memory up to a limit, and further lines are lost. Later, the log
// shows how many lines were lost.
import { Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { openLog } from '../../src/observability/stdout.ts'

const mebibyte = 1024 * 1024

it.each([
  ['one process', false],
  ['several processes', true],
])(
  'the log of %s keeps at most 32 MiB of lines while its reader stalls, and reports the number of lost lines',
  async (_, isShared) => {
    let text = ''
    let written = 0
    let release: (() => void) | undefined
    let isStalled = true
    const output = new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk
        written += chunk.length
        if (isStalled) release = done
        else done()
      },
    })
    const log = await openLog(output, { level: 'info', requests: true }, { isShared, worker: 7 })
    const fill = 'x'.repeat(16 * 1024)
    const count = 3_000
    for (let number = 0; number < count; number += 1) log.info({ number, fill })
    expect(count * fill.length).toBeGreaterThan(40 * mebibyte)

    isStalled = false
    release?.()
    await expect.poll(() => output.writableLength).toBe(0)
    expect(written).toBeGreaterThan(30 * mebibyte)
    expect(written).toBeLessThan(33 * mebibyte)

    log.info({ number: count, fill })
    await expect.poll(() => text).toContain('log lines lost')
    const lines = () =>
      text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
    const numbersOf = () => lines().flatMap(({ number }) => number ?? [])
    await expect.poll(() => numbersOf().at(-1)).toBe(count)
    const numbers = numbersOf()
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    const lost = count + 1 - numbers.length
    expect(lost).toBeGreaterThan(500)
    expect(lines().filter(({ msg }) => msg === 'log lines lost')).toEqual([
      expect.objectContaining({ level: 40, worker: 7, lines: lost }),
    ])
  },
)
