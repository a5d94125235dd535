// Replaces `${NAME}`, `${NAME:-default}` and `${file:PATH}` in one scalar; `$${` is a literal `${` (CONTRACT §2).
import { FileRefused, maxValueBytes, type ReadFile } from '../read-file.ts'

export interface InterpolationContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: ReadFile
  /** Characters that may still be inserted: a short file may name a long value a million times. */
  readonly room: number
}

export interface InterpolationResult {
  readonly text: string
  /** Characters that were inserted; more than `room` if that was the problem. */
  readonly putIn: number
  /** One sentence for each placeholder that could not be replaced; values are never repeated. */
  readonly errors: readonly string[]
}

/** Replaces the placeholders once: an inserted value is not interpolated again. */
export function interpolate(
  text: string,
  { env, readFile, room }: InterpolationContext,
): InterpolationResult {
  const errors: string[] = []
  let putIn = 0
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
          'has a ${…} that cannot be read; write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for ${',
        )
      } else if (path !== undefined) {
        try {
          return put(readUtf8(path, maxValueBytes, readFile).replace(/\r?\n$/, ''))
        } catch (error) {
          errors.push(`cannot read the file ${JSON.stringify(path)} (${readErrorReason(error)})`)
        }
      } else if (name !== undefined) {
        const value = Object.hasOwn(env, name) ? env[name] : undefined
        // As in the shell, an empty value counts as unset with `:-`.
        if (fallback !== undefined) return put(value || fallback)
        if (value !== undefined) return put(value)
        errors.push(
          `needs ${name}, which is not set in the environment; set it or write \${${name}:-default}`,
        )
      }
      return whole
    },
  )
  if (putIn > room) errors.push('needs more text through ${…} than the whole file may have: 4 MiB')
  return { text: replaced, putIn, errors }
}

/**
 * A file's text. Bytes that are not UTF-8 all decode to U+FFFD: a random binary secret would lose most of its
 * strength unnoticed.
 * @throws the error that kept the file from being read, or one with the code `NOT_UTF8`
 */
export function readUtf8(path: string, maxBytes: number, readFile: ReadFile): string {
  const text = readFile(path, maxBytes)
  if (text.includes('\uFFFD')) throw Object.assign(new Error('not UTF-8'), { code: 'NOT_UTF8' })
  return text
}

/** Why a file cannot be read; the system's own message would repeat the path. */
export function readErrorReason(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  const reasons: Record<string, string> = {
    ENOENT: 'no such file',
    EISDIR: 'a folder',
    EACCES: 'not permitted',
    NOT_UTF8: 'not text in UTF-8',
  }
  return reasons[code] ?? code
}
