// Shortens and simplifies a failing input in many steps. A step is kept only if the resulting input still fails.

/** The maximum number of shorter inputs to try. */
const mostTries = 2_000

/** Returns a shorter and simpler input that still fails. @param fails returns whether an input fails */
export async function shrink(input: string, fails: (input: string) => Promise<boolean>): Promise<string> {
  let text = input
  let tries = 0
  const isTaken = async (candidate: string) => {
    tries += 1
    if (tries > mostTries || !(await fails(candidate))) return false
    text = candidate
    return true
  }
  for (let size = text.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < text.length; ) {
      if (!(await isTaken(text.slice(0, at) + text.slice(at + size)))) at += size
    }
  }
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== 'a') await isTaken(`${text.slice(0, at)}a${text.slice(at + 1)}`)
  }
  return text
}
