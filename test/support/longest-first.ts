// Sorts the test files so that the slowest files start first. After each file that needs much CPU comes a file that
// mostly waits.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const folder = fileURLToPath(new URL('../', import.meta.url))

/** The slowest files. Each line has a file that keeps a CPU busy, then a file that mostly waits for timers. */
const first = [
  ['console/console', 'journeys/password-reset'],
  ['journeys/workers', 'security/malformed-behind-others'],
  ['journeys/reload-program', 'journeys/changes'],
  ['commands/large-files', 'journeys/open-streams'],
  ['journeys/traces-process', 'commands/store-failure'],
  ['security/upstream-behaviors', 'security/slow-clients'],
  ['commands/keys-reseal', 'upstream/targets/circuit-breaker'],
  ['journeys/process', 'security/pipelined-hand-overs'],
  ['commands/users-shown', 'server/drain'],
  ['storage/pglite/prepared-folder', 'webhooks/delivery/delivery-worker'],
  ['journeys/workers-connections', 'upstream/held-back'],
  ['journeys/reload', 'storage/postgres/postgres'],
  ['security/mutations', 'journeys/email'],
  ['storage/pglite/pglite', 'journeys/names'],
  ['commands/users', 'deploy/prometheus'],
  ['contracts/deliveries', 'storage/postgres/postgres-listener'],
  ['security/hostile-bodies', 'storage/redis/redis'],
  ['config/load-properties', 'security/request-smuggling'],
  ['contracts/migrations', 'storage/postgres/postgres-warmup'],
  ['journeys/key-files', 'commands/keys'],
  ['openapi/conformance', 'journeys/events'],
  ['contracts/counted-batches', 'journeys/stores-failing'],
  ['journeys/first-rush', 'upstream/failures'],
  ['journeys/key-rotation', 'upstream/targets/targets'],
  ['explain/agreement', 'journeys/mails'],
]
  .flat()
  .map(name => `${folder}${name}.test.ts`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    for (const file of first)
      if (!existsSync(file)) throw new Error(`test/support/longest-first.ts lists a missing file: ${file}`)
    const place = ({ moduleId }: TestSpecification) => first.indexOf(moduleId) + 1 || Infinity
    // The sort is stable, so the other files keep their usual order.
    return (await super.sort(files)).sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0))
  }
}
