// Tests that certificate files can be replaced while the gateway uses them. The tests replace one file after the other,
// and also write invalid contents.
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
/** The new certificates that were reported, in PEM format. */
let reported: unknown[]
let log: string[]
const file = (half: 'cert' | 'key') => join(folder, half)

function replace(half: 'cert' | 'key', { files }: TestCertificate): void {
  copyFileSync(files[half], file(half))
}

/** Runs the next `times` polls. */
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

describe('a replaced TLS certificate', () => {
  it('is used when both files are replaced, and causes no warning while only one file is replaced', async () => {
    replace('cert', second)
    await poll()
    replace('key', second)
    await poll(5)
    expect([reported, rejections()]).toEqual([[second.cert], []])
  })

  it('is rejected with one warning if its key does not match, and the previous certificate stays in use', async () => {
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

  it('is not used if the old file is restored before the key is replaced, and the next mismatch causes a new warning', async () => {
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
    ['missing', undefined],
  ])('is rejected with one warning if it is %s, and the next valid certificate is used', async (_, text) => {
    if (text === undefined) rmSync(file('cert'))
    else writeFileSync(file('cert'), text)
    await poll(2)
    expect(rejections()).toEqual([expect.stringContaining('server.tls.cert: ')])
    replace('cert', second)
    replace('key', second)
    await poll(2)
    expect(reported).toEqual([second.cert])
  })

  it('if it cannot be read because of a system error, causes no warning, and the next certificate is used', async () => {
    rmSync(file('cert'))
    // The file at the end of this link exists, but every read fails with EIO.
    symlinkSync('/proc/self/mem', file('cert'))
    await poll(5)
    expect(rejections()).toEqual([])
    rmSync(file('cert'))
    replace('cert', second)
    replace('key', second)
    await poll(2)
    expect(reported).toEqual([second.cert])
  })

  it('is not read after the gateway has stopped watching', async () => {
    certificate.stop()
    replace('cert', second)
    replace('key', second)
    await poll(5)
    expect(reported).toEqual([])
  })
})
