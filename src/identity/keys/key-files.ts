// Reads the keys of `auth.keys` from their files.
import { readFile } from 'node:fs/promises'
import { KeyError, readPrivateJwk, type SigningKey, withSubject } from './signing-key.ts'

/**
 * In the order of the configuration: the first signs.
 * @throws KeyError with a sentence that names the file
 */
export async function readKeyFiles(files: readonly string[]): Promise<SigningKey[]> {
  const keys: SigningKey[] = []
  for (const file of files) {
    const key = await readKeyFile(file)
    if (keys.some(other => other.kid === key.kid)) {
      throw new KeyError(`auth.keys: ${file} has the kid of a file before it (${key.kid})`)
    }
    keys.push(key)
  }
  return keys
}

async function readKeyFile(file: string): Promise<SigningKey> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    throw new KeyError(`auth.keys: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  return withSubject(`auth.keys: ${file}`, readPrivateJwk(text))
}
