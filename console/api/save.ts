// Saves a response of the gateway as a file.

/**
 * @param name the name of the file
 * @param content the value to write as JSON
 */
export function saveJson(name: string, content: unknown): void {
  const url = URL.createObjectURL(
    new Blob([`${JSON.stringify(content, null, 2)}\n`], { type: 'application/json' }),
  )
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The URL must stay valid until the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
