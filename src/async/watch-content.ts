// Polls the content of files for changes. New content is reported once, after two polls in a row have found it.

interface Options {
  /**
   * Returns the content, or a value that represents the content. Returns `undefined` if there is nothing to compare.
   * Never rejects.
   */
  read(): string | undefined | Promise<string | undefined>
  inUse(): string | undefined
  intervalMs: number
  onChange(): void
}

/**
 * Polls the content of a file, because file events are unreliable. For example, an editor renames the file, Kubernetes
 * replaces a symlink in the path of the file, and a network file system sends no events. A half-written file may look
 * complete, so a change is reported only if two polls in a row find the same content.
 */
export function watchContent({ read, inUse, intervalMs, onChange }: Options): () => void {
  let previous: string | undefined
  let reported: string | undefined
  let isStopped = false
  let timer = setTimeout(poll, intervalMs).unref()

  async function poll(): Promise<void> {
    const content = await read()
    if (isStopped) return
    if (content !== undefined) compare(content)
    timer = setTimeout(poll, intervalMs).unref()
  }

  function compare(content: string): void {
    if (content === inUse()) reported = undefined
    // Each content is reported only once, because applying it may take longer than the interval.
    else if (content === previous && content !== reported) {
      reported = content
      onChange()
    }
    previous = content
  }

  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
