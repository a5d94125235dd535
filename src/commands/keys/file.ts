// Writes a new private key to a file that only its owner may read, never over an existing file.
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { generatePrivateJwk, type SigningAlgorithm } from '../../identity/keys/signing-key.ts'
import type { Io } from '../io.ts'

/**
 * @returns the key's `kid`
 * @throws Error with a sentence for the operator if the file cannot be created
 */
export async function writeKeyFile(io: Io, file: string, alg: SigningAlgorithm): Promise<string> {
  const { kid, text } = await generatePrivateJwk(alg)
  try {
    await writeFile(resolve(io.cwd, file), `${text}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new Error(`${file} is there already, and nothing is written over: name another`)
    throw new Error(`${file} cannot be written (${code ?? message})`)
  }
  return kid
}
