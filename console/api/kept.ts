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

/** Calls `listener` when another tab has forgotten it, and forgets it here too. @returns a function that ends it */
export function onForgottenElsewhere(name: string, listener: () => void): () => void {
  const listen = ({ key, newValue }: StorageEvent) => {
    // Without a key, all was cleared.
    if (key !== null && (key !== name || newValue !== null)) return
    untilLeft.delete(name)
    listener()
  }
  addEventListener('storage', listen)
  return () => removeEventListener('storage', listen)
}

export function forget(name: string): void {
  untilLeft.delete(name)
  try {
    localStorage.removeItem(name)
  } catch {
    // Nothing was kept there.
  }
}
