// Stores values between visits in the browser's storage. If that is forbidden, they stay until the user leaves the
// page.
const untilLeft = new Map<string, string>()

export function readKept(name: string): string | undefined {
  try {
    return untilLeft.get(name) ?? localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Do not use it for secrets, because every script of this origin can read the value. */
export function keep(name: string, value: string): void {
  untilLeft.set(name, value)
  try {
    localStorage.setItem(name, value)
  } catch {
    // The value is then kept only in this page.
  }
}

/**
 * Calls `listener` when another tab has removed the value, and also removes it here. @returns a function that
 * removes the listener
 */
export function onForgottenElsewhere(name: string, listener: () => void): () => void {
  const listen = ({ key, newValue }: StorageEvent) => {
    // Without a key, everything was cleared.
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
    // Nothing was stored.
  }
}
