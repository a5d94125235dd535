// Tests the Dockerfile without Docker: replays its steps in empty folders, then runs the resulting image. The test
// needs Linux and root.
//
// Each stage has its own root file system. Programs run in it by chroot in a mount namespace. It contains Node in the
// version of the base image, and the other programs of this machine. It also contains the users and DNS files from
// `makeRoot`. All other files come from the steps of the stage.
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd, runAndCleanUp } from '../../test/support/cleanup.ts'
import { findNode, nodeVersion } from './base-node.ts'
import { build, makeContext } from './build.ts'
import { readDockerfile } from './dockerfile.ts'
import type { Image } from './root.ts'
import { tryOut } from './try-out.ts'

// This program runs as a compiled copy in another folder. In that folder, package.json is a link to the package.json of
// the repository. So the real path of package.json leads to the repository.
const repository = dirname(realpathSync(fileURLToPath(new URL('../../package.json', import.meta.url))))

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  console.error('The replay needs Linux and root, for chroot and mount namespaces.')
  process.exit(1)
}
await runAndCleanUp(async () => {
  const work = mkdtempSync(join(tmpdir(), 'peage-replay-'))
  chmodSync(work, 0o755)
  atEnd(() => rmSync(work, { recursive: true, force: true }))
  const context = makeContext(repository, work)
  const stages = new Map<string, Image>()
  const read = readDockerfile(readFileSync(join(repository, 'Dockerfile'), 'utf8'))
  const version = nodeVersion(read[0]?.from ?? '')
  const node = findNode(version)
  for (const stage of read) {
    stages.set(stage.name, build(stage, { context, stages, work, node }))
  }
  const image = [...stages.values()].at(-1)
  if (image === undefined) throw new Error('the Dockerfile contains no stage')
  await tryOut(image, version)
  return 0
})
