// Tests that the unit in deploy/systemd matches its gateway.yaml and the program, and that systemd-analyze accepts it.
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { isProgram, searchPath } from '../support/servers.ts'
import { configOf, pathOf, read, seconds, secretsIn } from './read.ts'

const unit = 'deploy/systemd/peage.service'
const settings = read(unit)
  .split('\n')
  .flatMap(line => {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? []
    return key === undefined ? [] : [[key, value ?? ''] as const]
  })
const all = (name: string) => settings.filter(([key]) => key === name).map(([, value]) => value)
const credentials = all('LoadCredential').map(value => value.split(':')[0] ?? '')
const config = configOf(
  'deploy/systemd/gateway.yaml',
  secretsIn('/run/credentials/peage.service', credentials),
)

describe('deploy/systemd', () => {
  it('loads every credential that its gateway.yaml uses', () => {
    expect(config.storage.postgres).not.toBe('')
    const named = [...read('deploy/systemd/gateway.yaml').matchAll(/peage\.service\/(\w+)/g)].map(
      ([, name]) => name,
    )
    expect(named.sort()).toEqual([...credentials].sort())
  })

  it('sends SIGTERM and waits longer than the drain timeout before it kills the gateway', () => {
    expect(all('KillSignal')).toEqual(['SIGTERM'])
    expect(seconds(String(all('TimeoutStopSec')))).toBeGreaterThanOrEqual(
      config.server.drain_timeout / 1_000 + 5,
    )
  })

  it('checks the configuration before a reload and reloads with SIGHUP', () => {
    expect(all('ExecReload').map(line => line.replace(/^\S*\/(\w+) (\S+).*/, '$1 $2'))).toEqual([
      'node /opt/peage/dist/cli.js',
      'kill -HUP',
    ])
  })

  it('does not restart the gateway if the gateway ended because of an invalid configuration', () => {
    expect(all('RestartPreventExitStatus')).toEqual(['2'])
  })

  it('permits writable executable memory, which V8 needs', () => {
    expect(all('MemoryDenyWriteExecute')).toEqual(['no'])
  })

  it('uses its state folder as the data_dir of the embedded database', () => {
    expect(config.storage.data_dir).toBe(`/var/lib/${all('StateDirectory')}`)
  })

  const analyze = searchPath()
    .map(folder => `${folder}/systemd-analyze`)
    .find(isProgram)
  if (analyze === undefined)
    console.warn('skipped: deploy/systemd, checked by systemd: systemd-analyze is not installed')

  it.skipIf(analyze === undefined)('passes systemd-analyze verify and systemd-analyze security', () => {
    const verified = spawnSync(String(analyze), ['verify', pathOf(unit)], { encoding: 'utf8' })
    // The test checks only lines about this unit, because other lines may be about other units of the machine.
    expect(verified.stderr.split('\n').filter(line => /peage\.service/.test(line))).toEqual([])
    const secure = spawnSync(String(analyze), ['security', '--offline=yes', '--threshold=20', pathOf(unit)])
    expect(secure.status).toBe(0)
  })
})
