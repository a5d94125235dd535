// Tests that docs/getting-started.md shows the output of the commands for the gateway.yaml on the page.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { commandLine } from '../commands/peage.ts'

const page = readFileSync(new URL('../../docs/getting-started.md', import.meta.url), 'utf8')
const env = { PEAGE_ADMIN_TOKEN: 'my-first-admin-token' }
const { peage, write } = commandLine()
write('gateway.yaml', /^```yaml file: gateway.yaml\n(.*?)^```$/ms.exec(page)?.[1] ?? '')

it('docs/getting-started.md shows the actual output of `peage check`', async () => {
  const { stdout } = await peage(['check'], env)
  expect(page).toContain(`\n\`\`\`text\n${stdout}\`\`\`\n`)
})

it('docs/getting-started.md shows the same guards as the output of `peage explain`', async () => {
  const { stdout } = await peage('explain GET /courses/1 --as free --used-today 1'.split(' '), env)
  const [shown = ''] = /^route .*?daily_limit_reached$/ms.exec(page) ?? []
  expect(shown).not.toBe('')
  expect(stdout).toContain(shown)
})
