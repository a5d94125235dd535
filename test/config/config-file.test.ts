// Tests how a running gateway reloads a changed configuration file.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createConfigFile } from '../../src/config/config-file.ts'
import { loadSource } from '../../src/config/load-source.ts'
import { keepImmutable } from '../../src/config/reload-plan.ts'
import { emptyFolder } from '../commands/peage.ts'

const folder = emptyFolder()

it.each([
  [1, 4, '', 2],
  [4, 1, '', 1],
  ['auto', 1, '', 1],
  [1, 4, 'concurrency: 1', 1],
])(
  'while %s workers run, a reload with `workers: %s` and `hashing: { %s }` sets hashing.concurrency to %i',
  async (before, after, hashing, hashes) => {
    const save = (workers: number | string, written: string) =>
      writeFileSync(
        join(folder, 'gateway.yaml'),
        `server: { workers: ${workers} }
storage: { postgres: postgres://db/x, redis: redis://r }
auth: { hashing: { ${written} } }
`,
      )
    const source = { file: 'gateway.yaml', folder, env: {}, cores: 4 }
    const file = createConfigFile(source, {
      // The test loads the file in the current thread, because a worker thread would need the compiled program.
      loadInWorker: async running => {
        const { read, digest } = loadSource(running)
        return { ...read, digest }
      },
    })
    save(before, '')
    const started = file.load()
    save(after, hashing)
    const reread = await file.reload()
    if (!('config' in started && 'config' in reread)) throw new Error('the file was refused')
    const { config, restartRequired } = keepImmutable(started.config, reread.config)
    expect(restartRequired).toEqual(['/server/workers'])
    expect(config.server.workers).toBe(started.config.server.workers)
    expect(config.auth.hashing.concurrency).toBe(hashes)
  },
)

it('if a reload could not read a changed file, the return to the old content is reported as a change', async () => {
  const save = (text: string) => writeFileSync(join(folder, 'gateway.yaml'), text)
  const unread = { problems: [], digest: undefined }
  const file = createConfigFile(
    { file: 'gateway.yaml', folder, env: {} },
    {
      loadInWorker: async () => unread as never,
      pollIntervalMs: 20,
    },
  )
  save('server: {}\n')
  file.load()
  let changes = 0
  const stop = file.watch(() => {
    changes += 1
    void file.reload()
  })
  save('server: { }\n')
  await expect.poll(() => changes).toBe(1)
  // Several polls run during this pause. They must not report the same change again.
  await new Promise(resolve => setTimeout(resolve, 200))
  expect(changes).toBe(1)
  save('server: {}\n')
  await expect.poll(() => changes).toBe(2)
  stop()
})
