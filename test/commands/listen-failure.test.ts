// An address that cannot be listened at: start names the key, the file and the variables, and exits 1.

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeDatabase } from '../support/embedded.ts'
import { runProgram } from '../support/program.ts'
import { listen } from '../support/upstream.ts'
import { emptyFolder } from './peage.ts'

describe('an address that cannot be listened at', () => {
  const cwd = emptyFolder()
  const other = createServer()
  let port: string
  beforeAll(async () => {
    port = new URL(await listen(other)).port
    await makeDatabase(join(cwd, 'data'))
  })
  afterAll(() => other.close())

  const storage = 'storage: { data_dir: ./data }\n'
  const starting = async (text: string, env: Record<string, string> = {}) => {
    writeFileSync(join(cwd, 'my.yaml'), storage + text)
    const { code, stderr } = await runProgram(['start', '-c', 'my.yaml'], cwd, env)
    return [code, stderr]
  }

  it('is named with the key and the variables of the file, for the port of another program', async () => {
    expect(
      await starting('server: { listen: "${HOST:-0.0.0.0}:${PORT}" }', { HOST: '127.0.0.1', PORT: port }),
    ).toEqual([
      1,
      `error: another program listens at 127.0.0.1:${port}. Stop it, or choose another port: server.listen in my.yaml (variables HOST and PORT)\n`,
    ])
  })

  it('is named with the key of the admin listener, without a variable where the file has none', async () => {
    expect(
      await starting(`server: { listen: "127.0.0.1:0" }\nadmin: { listen: "localhost:${port}" }`),
    ).toEqual([
      1,
      `error: another program listens at 127.0.0.1:${port}. Stop it, or choose another port: admin.listen in my.yaml\n`,
    ])
  })

  it('is named where it belongs to another machine', async () => {
    expect(await starting('server: { listen: "${HOST}:18098" }', { HOST: '192.0.2.1' })).toEqual([
      1,
      'error: this machine does not have the address 192.0.2.1:18098. Choose another one: server.listen in my.yaml (variable HOST)\n',
    ])
  })
})
