// Looks a name up in the machine's hosts file (hosts(5)).
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'

/**
 * The addresses of a name; empty if the file lacks it or cannot be read.
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
    // Synchronous: an asynchronous read would wait for a thread of the pool, behind password hashes.
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
