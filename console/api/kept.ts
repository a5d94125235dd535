// What the page keeps between visits: in the browser's storage, and where that is forbidden until the page is left.
const untilLeft = new Map<string, string>()

export function readKept(name: string): string | undefined {
  try {
    return untilLeft.get(name) ?? localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Never a secret: every script of this origin reads it. */
export function keep(name: string, value: string): void {
  untilLeft.set(name, value)
  try {
    localStorage.setItem(name, value)
  } catch {
    // It holds for this page alone then.
  }
}

export function forget(name: string): void {
  untilLeft.delete(name)
  try {
    localStorage.removeItem(name)
  } catch {
    // Nothing was kept there.
  }
}
