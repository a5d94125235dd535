// The order of the test files: those that take longest begin first, so that none of them runs alone at the end.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const folder = fileURLToPath(new URL('../', import.meta.url))

/** Vitest goes by the length of a file where it knows nothing better; these take longer than theirs says. */
const longest = [
  'journeys/reload-program',
  'security/upstream-behaviours',
  'journeys/workers',
  'commands/keys-reseal',
  'security/mutations',
  'commands/large-files',
  'journeys/password-reset',
  'security/hostile-bodies',
  'journeys/process',
  'accounts/session-ends',
  'storage/pglite/prepared-folder',
  'journeys/traces-process',
  'journeys/workers-connections',
  'console/console',
  'commands/store-failure',
  'storage/pglite/pglite',
  'journeys/key-rotation',
  'commands/keys',
  'journeys/key-files',
  'explain/agreement',
  'journeys/first-rush',
  'config/load-properties',
].map(name => `${folder}${name}.test.ts`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    for (const file of longest) if (!existsSync(file)) throw new Error(`${file} is not there any more`)
    const place = ({ moduleId }: TestSpecification) => longest.indexOf(moduleId) + 1 || Infinity
    // A stable sort: among the others the usual order stays.
    return (await super.sort(files)).sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0))
  }
}
