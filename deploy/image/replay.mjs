// Tries the Dockerfile where there is no Docker: replays its steps in empty folders, then runs what came of them.
//
// Each stage is a root file system of its own, entered by chroot in a mount namespace: the base image's Node, other
// programs of this machine in place of its, and nothing of the repository but what the steps copy. Needs Linux and root.
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd, runAndCleanUp } from '../../bench/cleanup.mjs'
import { findNode, nodeVersion } from './base-node.mjs'
import { build, makeContext } from './build.mjs'
import { readDockerfile } from './dockerfile.mjs'
import { tryOut } from './try-out.mjs'

const repository = fileURLToPath(new URL('../..', import.meta.url))

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  console.error('the replay needs Linux and root, for chroot and mount namespaces')
  process.exit(1)
}
await runAndCleanUp(async () => {
  const work = mkdtempSync(join(tmpdir(), 'peage-replay-'))
  chmodSync(work, 0o755)
  atEnd(() => rmSync(work, { recursive: true, force: true }))
  const context = makeContext({ repository, work })
  const stages = new Map()
  let image
  const read = readDockerfile(readFileSync(join(repository, 'Dockerfile'), 'utf8'))
  const version = nodeVersion(read[0].from)
  const node = findNode(version)
  for (const stage of read) {
    image = build(stage, { context, stages, work, node })
    stages.set(stage.name, image)
  }
  await tryOut(image, version)
})
