// An upstream hangs, resets connections, or sends garbage or too much data. Clients get the right status code, and no
// socket leaks.
import { readdirSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../support/processes.ts'
import { codeOf } from './error-code.ts'
import { peakDuring, residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { setting } from './settings.ts'
import { startStage } from './stage.ts'
import { countsOf, type Watch } from './watch.ts'

const GiB = 1024 * MiB
const much = setting('FAULTS_GIB', 10, 1) * GiB
const times = setting('FAULTS_TIMES', 200, 20)

/** For each fault, the expected status code, or `broken off` if the response must end early. */
const expected: Readonly<Record<string, string>> = {
  well: '200',
  hangs: '504',
  resets: '502',
  'resets-within': 'broken off',
  garbage: '502',
  'garbage-within': 'broken off',
  'closes-half': 'broken off',
  'closes-unanswered': '502',
  'stands-still': 'broken off',
}

export async function upstreamFaults({ say, expect }: Watch): Promise<void> {
  const upstream = await startProgram(fileURLToPath(new URL('./serve-faults.js', import.meta.url)))
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://127.0.0.1:${upstream.port}`],
    upstream: ', timeouts: { response: 1s, idle: 2s }, connections: 1024',
  })
  const { port, pid } = stage.gateway
  try {
    const before = { sockets: socketsOf(pid), memory: residentOf(pid) }
    for (const [fault, wanted] of Object.entries(expected)) {
      const seen = await Promise.all(Array.from({ length: times }, () => get(port, fault)))
      expect(`${fault}: ${wanted}`, seen.length > 0 && seen.every(what => what === wanted), countsOf(seen))
    }
    expect('one byte per second: 200', (await get(port, 'drips')) === '200', 'ten bytes in ten seconds')
    const { growth } = await peakDuring(pid, () => get(port, `much-of-it?${much}`))
    expect(`${much / GiB} GiB: memory grows by less than 64 MiB`, growth < 64, `${growth.toFixed(0)} MiB`)
    // When the upstream stops, the gateway must close its idle connections to the upstream.
    await upstream.stop()
    await sleep(2_000)
    const after = { sockets: socketsOf(pid), memory: residentOf(pid) }
    expect(
      'no socket is left',
      after.sockets <= before.sockets,
      `${before.sockets} before, ${after.sockets} after`,
    )
    say(`memory ${before.memory.toFixed(0)} MiB before, ${after.memory.toFixed(0)} MiB after`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** @returns the status code, `broken off` if the response ended early, or the code of another error */
function get(port: number, path: string): Promise<string> {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, path: `/public/${path}`, agent: false })
    sent.on('error', error => resolve(codeOf(error)))
    sent.on('response', answer => {
      answer.on('error', () => resolve('broken off'))
      answer.on('end', () => resolve(answer.complete ? String(answer.statusCode) : 'broken off'))
      answer.resume()
    })
    sent.end()
  })
}

function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter(name => linkOf(`${folder}/${name}`).startsWith('socket:')).length
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // The gateway closed this descriptor after the drill had listed the folder.
    return ''
  }
}
