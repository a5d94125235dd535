// Tests the messages about files that `peage check` cannot read. To update `golden/unreadable-files.txt`, run
// `npx vitest run test/commands/unreadable-files.test.ts -u`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder, runIn } from './peage.ts'

it('if files cannot be read, check prints one line per file with the reason', async () => {
  const folder = emptyFolder()
  const long = 'x'.repeat(4 * 1024 * 1024)
  mkdirSync(join(folder, 'folder'))
  for (const [name, content] of [
    ['bytes', Buffer.from([0x61, 0xff])],
    ['large', `#${long}`],
    ['grown.yaml', `auth: { issuer: "${'${LONG}'.repeat(50)}" }`],
    ['hundred.yaml', `routes:\n${'  - { path: x }\n'.repeat(60)}`],
  ] as const)
    writeFileSync(join(folder, name), content)
  const named = ['gone', 'bytes', 'large', 'folder', '/dev/zero']
  for (const [index, name] of named.entries())
    writeFileSync(join(folder, `named-${index}.yaml`), `auth: { issuer: "\${file:${name}}" }`)
  const printed: string[] = []
  for (const file of [
    ...named,
    ...named.map((_, index) => `named-${index}.yaml`),
    'grown.yaml',
    'hundred.yaml',
  ]) {
    const { exit, stdout } = await runIn(folder, ['check', '-c', file], {
      env: { LONG: long.slice(0, 100_000) },
    })
    expect(exit).toBe(2)
    printed.push(...stdout.trimEnd().split('\n').slice(-1))
  }
  await expect(`${printed.join('\n')}\n`).toMatchFileSnapshot('golden/unreadable-files.txt')
})
