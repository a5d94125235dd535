// Replaces `${NAME}`, `${NAME:-default}` and `${file:PATH}` in one scalar. `$${` becomes a literal `${`.
import { inUtf8, maxValueBytes, type ReadFile, tryRead } from '../read-file.ts'

interface InterpolationContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: ReadFile
  /**
   * The number of characters that may still be inserted. Without this limit, a short file could insert a long value a
   * million times.
   */
  readonly room: number
}

export interface InterpolationResult {
  readonly text: string
  /** The environment variables that the text uses, each once. */
  readonly variables: readonly string[]
  readonly fromFile: boolean
  /** The number of inserted characters. If it is greater than `room`, `errors` reports that the values are too long. */
  readonly putIn: number
  /** One message for each placeholder that could not be replaced. Messages never contain values. */
  readonly errors: readonly string[]
}

/** Replaces the placeholders in one pass. A placeholder inside an inserted value stays as it is. */
export function interpolate(
  text: string,
  { env, readFile, room }: InterpolationContext,
): InterpolationResult {
  const errors: string[] = []
  const variables = new Set<string>()
  let putIn = 0
  let fromFile = false
  const put = (value: string): string => {
    putIn += value.length
    return putIn > room ? '' : value
  }
  const replaced = text.replace(
    /\$\$\{|\$\{([^}]*)(\}?)/g,
    (whole, inner: string | undefined, end: string) => {
      if (inner === undefined) return '${'
      if (putIn > room) return ''
      const [, name, fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inner) ?? []
      const path = name === undefined ? /^file:(.+)$/s.exec(inner)?.[1] : undefined
      if (end === '' || (name === undefined && path === undefined) || inner.includes('${')) {
        errors.push(
          'has an invalid ${…}; write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for a literal ${',
        )
      } else if (path !== undefined) {
        fromFile = true
        const read = tryRead(path, maxValueBytes, inUtf8(readFile))
        if (read.error === undefined) return put(read.text.replace(/\r?\n$/, ''))
        errors.push(read.error)
      } else if (name !== undefined) {
        variables.add(name)
        const value = Object.hasOwn(env, name) ? env[name] : undefined
        // As in the shell, `${NAME:-default}` also gives the default if the variable is empty.
        if (fallback !== undefined) return put(value || fallback)
        if (value !== undefined) return put(value)
        errors.push(
          `needs the environment variable ${name}, which is not set; set it or write \${${name}:-default}`,
        )
      }
      return whole
    },
  )
  if (putIn > room) errors.push('inserts too much text through ${…}; the limit for the whole file is 4 MiB')
  return { text: replaced, variables: [...variables], fromFile, putIn, errors }
}
