// Tests that `start` exits with 1 if a listen address is not available. The message contains the key of the address,
// the file, and the variables in the value.

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeDatabase } from '../support/embedded.ts'
import { runProgram } from '../support/program.ts'
import { listen } from '../support/upstream.ts'
import { emptyFolder } from './peage.ts'

describe('an unavailable listen address', () => {
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

  it('is reported with its key, and with the variables in its value, if another program uses the port', async () => {
    expect(
      await starting('server: { listen: "${HOST:-0.0.0.0}:${PORT}" }', { HOST: '127.0.0.1', PORT: port }),
    ).toEqual([
      1,
      `error: another program already listens at 127.0.0.1:${port}. Stop it, or choose another port in server.listen of my.yaml (variables HOST and PORT).\n`,
    ])
  })

  it('is reported without variables if its value contains no variable', async () => {
    expect(
      await starting(`server: { listen: "127.0.0.1:0" }\nadmin: { listen: "localhost:${port}" }`),
    ).toEqual([
      1,
      `error: another program already listens at 127.0.0.1:${port}. Stop it, or choose another port in admin.listen of my.yaml.\n`,
    ])
  })

  it('is reported if the address does not belong to the machine', async () => {
    expect(await starting('server: { listen: "${HOST}:18098" }', { HOST: '192.0.2.1' })).toEqual([
      1,
      'error: this machine does not have the address 192.0.2.1:18098. Choose another address in server.listen of my.yaml (variable HOST).\n',
    ])
  })
})
