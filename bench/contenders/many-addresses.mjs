// The gateway with a target whose name has 32 addresses, all of the same service.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../processes.mjs'
import { bearerRow, rowName, startGateway } from './gateway.mjs'

export const byMany = 'bearer, 32 addresses'

/**
 * @param {string} name of the build
 * @returns {import('../contender.mjs').Contender}
 */
export function manyAddresses(name) {
  return {
    rows: [rowName(name, byMany)],
    absence: () =>
      spawnSync('unshare', ['-m', 'true']).status === 0
        ? undefined
        : 'a hosts file of its own takes root (a mount namespace)',
    async start(stage) {
      const hosts = join(temporaryFolder().path, 'hosts')
      const addresses = Array.from({ length: 32 }, (_, index) => `127.0.32.${index + 1}`)
      writeFileSync(hosts, addresses.map(address => `${address} service.test\n`).join(''))
      const before = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
      const row = bearerRow(await startGateway(stage, { before, host: 'service.test' }))
      return [{ ...row, name: rowName(name, byMany) }]
    },
  }
}
