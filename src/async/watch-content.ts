// Polls for changes: reports each new content once, when two polls in a row have found it.

interface Options {
  /** The content or what stands for it; `undefined` if there is nothing to compare, as if not polled. Never rejects. */
  read(): string | undefined | Promise<string | undefined>
  inUse(): string | undefined
  intervalMs: number
  onChange(): void
}

/**
 * Polls rather than watches for events: an editor renames the file, Kubernetes swaps a symlink two folders up, a
 * network file system sends no events. Two polls must agree: a half-written file may look complete.
 * @returns a function that stops watching
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
    // Once per content: to take it into use may last longer than the interval.
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
