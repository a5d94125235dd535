// Keeps values in the browser's storage for the next visit. If the browser forbids storage, the values are kept in
// memory until the user leaves the page.
const untilLeft = new Map<string, string>()

export function readKept(name: string): string | undefined {
  try {
    return untilLeft.get(name) ?? localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** Stores a value. Do not use it for secrets, because every script of this origin can read the value. */
export function keep(name: string, value: string): void {
  untilLeft.set(name, value)
  try {
    localStorage.setItem(name, value)
  } catch {
    // The browser forbids storage, so the value is kept only in the memory of this page.
  }
}

/**
 * Waits until another tab removes the value. Then it removes the value in this tab too, and calls `listener`.
 * @returns a function that removes the listener
 */
export function onForgottenElsewhere(name: string, listener: () => void): () => void {
  const listen = ({ key, newValue }: StorageEvent) => {
    // If `key` is null, another tab has cleared the whole storage.
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
    // The browser forbids storage, so there is no stored value to remove.
  }
}
