// What the machine's hosts file says of a name (hosts(5)).
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'

/**
 * The addresses of a name, none where the file does not have it or cannot be read.
 * @param name in lower case
 */
export function readHosts(path: string, name: string): string[] {
  return contentOf(path)
    .split('\n')
    .map(line => line.replace(/#.*/, '').trim().split(/\s+/))
    .filter(
      ([address = '', ...names]) => isIP(address) !== 0 && names.some(each => each.toLowerCase() === name),
    )
    .map(([address = '']) => address)
}

function contentOf(path: string): string {
  try {
    // Not the asynchronous one: it would wait behind password hashes for a thread of the pool.
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
