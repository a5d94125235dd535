// Tests `peage keys` in two cases: the keys are in files, or another process has the embedded database open.
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readPrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { lockDataDir } from '../../src/storage/pglite/data-dir-lock.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const cwd = folder()
const keys = (...words: string[]) => peage(cwd, ['keys', ...words])

it.each(['ES256', 'EdDSA', 'RS256'])(
  '`keys generate --out` writes a private JWK for %s to a file that only the owner can read, and prints no private value',
  async alg => {
    const before = process.umask(0)
    const { exit, stdout, stderr } = await keys('generate', '--alg', alg, '--out', `${alg}.json`, '--json')
    process.umask(before)
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
    const file = join(cwd, `${alg}.json`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const text = readFileSync(file, 'utf8')
    const { kid } = await readPrivateJwk(text)
    expect(JSON.parse(text)).toMatchObject({ kid, alg, use: 'sig', d: expect.any(String) })
    expect(JSON.parse(stdout)).toEqual({ kid, alg, file: `${alg}.json` })
  },
)

it('`keys generate --out` needs no configuration and no database', async () => {
  const words = ['generate', '--out', 'alone.json', '-c', 'nowhere.yaml']
  expect((await keys(...words)).stdout).toMatch(
    /^key \S+ \(ES256\) was written to alone\.json\. Add this file to auth\.keys\.\n$/,
  )
})

it('`keys generate --out` does not overwrite a file or a dangling link, and reports a file that cannot be written', async () => {
  writeFileSync(join(cwd, 'there.json'), 'precious')
  symlinkSync(join(cwd, 'elsewhere.json'), join(cwd, 'link.json'))
  for (const name of ['there.json', 'link.json']) {
    expect(await keys('generate', '--out', name)).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: ${name} already exists. Nothing was written. Choose another file name.\n`,
    })
  }
  expect(readFileSync(join(cwd, 'there.json'), 'utf8')).toBe('precious')
  expect((await keys('generate', '--out', 'no/where.json')).stderr).toBe(
    'error: cannot write no/where.json (ENOENT)\n',
  )
})

it('if the keys are in files, `keys list` prints the files in the order of auth.keys, and commands that change keys fail', async () => {
  for (const name of ['a.json', 'b.json']) await keys('generate', '--out', name)
  const config = writeConfiguration(cwd, {
    name: 'files.yaml',
    admin: 'auth: { keys: [b.json, a.json] }',
  })
  const kid = (name: string) => JSON.parse(readFileSync(join(cwd, name), 'utf8')).kid
  const { stdout } = await keys('list', '--json', '-c', config)
  expect(JSON.parse(stdout).keys).toMatchObject([
    { kid: kid('b.json'), state: 'signs', kept_in: 'b.json', created_at: null, spent_from: null },
    { kid: kid('a.json'), state: 'verifies', kept_in: 'a.json' },
  ])
  expect((await keys('list', '-c', config)).stdout).not.toContain('"d"')
  for (const words of [['rotate'], ['generate'], ['retire', kid('a.json')]]) {
    expect(await keys(...words, '-c', config)).toEqual({
      exit: 1,
      stdout: '',
      stderr:
        'error: the signing keys are in files. Change auth.keys in files.yaml; create a key file with peage keys generate --out FILE.\n',
    })
  }
})

it('if another process has the embedded database open, the commands of `peage keys` print which process to stop', async () => {
  const data = join(cwd, 'data')
  mkdirSync(join(data, 'postgres'), { recursive: true })
  chmodSync(data, 0o700)
  const lock = await lockDataDir(data)
  for (const words of [['list'], ['generate'], ['rotate'], ['retire', 'x']]) {
    expect(await keys(...words)).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the data folder ${data} is in use by process ${process.pid}. This command cannot run at the same time. Stop that process first.\n`,
    })
  }
  await lock.release()
})
