// The gateway with a target whose host name resolves to 32 addresses. All 32 addresses lead to the same upstream.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/processes.ts'
import type { Contender } from '../contender.ts'
import { kinds, ours, rowName } from '../row-names.ts'
import { bearerRow, startGateway } from './gateway.ts'

const name = rowName(ours, kinds.manyAddresses)

export const manyAddresses: Contender = {
  rows: [name],
  absence: () =>
    spawnSync('unshare', ['-m', 'true']).status === 0
      ? undefined
      : 'a separate hosts file needs a mount namespace (unshare -m), which usually needs root',
  async start(stage) {
    const hosts = join(temporaryFolder().path, 'hosts')
    const addresses = Array.from({ length: 32 }, (_, index) => `127.0.32.${index + 1}`)
    writeFileSync(hosts, addresses.map(address => `${address} service.test\n`).join(''))
    const before = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
    return [{ ...bearerRow(await startGateway(stage, { before, host: 'service.test' })), name }]
  },
}
