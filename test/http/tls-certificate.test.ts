// A certificate's files are replaced while it is in use: one after the other, badly, or not at all for a while.
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openTlsCertificate, type TlsCertificate } from '../../src/http/tls-certificate.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { first, second, type TestCertificate } from '../support/certificates.ts'

let folder: string
let certificate: TlsCertificate
/** The certificates that were reported, in PEM. */
let reported: unknown[]
let log: string[]
const file = (half: 'cert' | 'key') => join(folder, half)

function replace(half: 'cert' | 'key', { files }: TestCertificate): void {
  copyFileSync(files[half], file(half))
}

/** The next poll, and those after it. */
async function poll(times = 1): Promise<void> {
  await vi.advanceTimersByTimeAsync(times * 500)
}

const rejections = () => log.filter(line => line.includes('new certificate rejected'))

beforeEach(async () => {
  vi.useFakeTimers()
  folder = mkdtempSync(join(tmpdir(), 'peage-tls-'))
  replace('cert', first)
  replace('key', first)
  reported = []
  log = []
  const output = new Writable({
    write(chunk, _encoding, done) {
      log.push(String(chunk))
      done()
    },
  })
  certificate = openTlsCertificate(
    { cert: file('cert'), key: file('key') },
    { clock: { now: Date.now }, logger: await createLogger({ level: 'info', requests: false }, output) },
  )
  certificate.watch(({ cert }) => reported.push(cert))
})

afterEach(() => {
  certificate.stop()
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

describe('a certificate that is replaced', () => {
  it('is taken once both files are there, without a warning for the moment between', async () => {
    replace('cert', second)
    await poll()
    replace('key', second)
    await poll(5)
    expect([reported, rejections()]).toEqual([[second.cert], []])
  })

  it('with a key of another certificate is warned of once, and the one before stays', async () => {
    replace('cert', second)
    await poll(5)
    expect(reported).toEqual([])
    expect(rejections().map(line => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: 40,
        fault: expect.stringContaining(`server.tls.key: ${file('key')} `),
      }),
    ])
    expect(rejections().join()).not.toContain('PRIVATE')
  })

  it('and put back is not taken for a new one, but what is bad again is warned of again', async () => {
    replace('cert', second)
    await poll(2)
    replace('cert', first)
    await poll(2)
    expect([reported, rejections().length]).toEqual([[], 1])
    replace('cert', second)
    await poll(2)
    expect([reported, rejections().length]).toEqual([[], 2])
  })

  it.each([
    ['broken', 'no certificate'],
    ['away', undefined],
  ])('a certificate that is %s is reported once, and the next valid one is used', async (_, text) => {
    if (text === undefined) rmSync(file('cert'))
    else writeFileSync(file('cert'), text)
    await poll(2)
    expect(rejections()).toEqual([expect.stringContaining('server.tls.cert: ')])
    replace('cert', second)
    replace('key', second)
    await poll(2)
    expect(reported).toEqual([second.cert])
  })

  it('a certificate that the machine cannot read is not rejected, and the next one is used', async () => {
    rmSync(file('cert'))
    // A regular file whose reads fail with EIO.
    symlinkSync('/proc/self/mem', file('cert'))
    await poll(5)
    expect(rejections()).toEqual([])
    rmSync(file('cert'))
    replace('cert', second)
    replace('key', second)
    await poll(2)
    expect(reported).toEqual([second.cert])
  })

  it('is not looked for after a stop', async () => {
    certificate.stop()
    replace('cert', second)
    replace('key', second)
    await poll(5)
    expect(reported).toEqual([])
  })
})
