// How the demo looks on a terminal, and in a file.

interface Exchange {
  title: string
  method: string
  url: string
  body: object | undefined
  status: number
  answer: object
  /** The status that was due, where it was another. */
  due: number | undefined
}

export interface Printer {
  line(text?: string): void
  heading(text: string): void
  exchange(exchange: Exchange): void
}

export function createPrinter(out: { write(text: string): unknown; isTTY?: boolean }): Printer {
  const paint = (code: number) => (text: string) => (out.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text)
  const [bold, dim, green, red] = [paint(1), paint(2), paint(32), paint(31)]
  const line = (text = '') => out.write(`${text}\n`)
  let step = 0
  return {
    line,
    heading: text => line(bold(text)),
    exchange({ title, method, url, body, status, answer, due }) {
      step += 1
      const mark = due === undefined ? green('✓') : red('✗')
      line()
      line(`${mark} ${bold(`${step}. ${title}`)}`)
      line(`  → ${method} ${new URL(url).pathname}${body === undefined ? '' : ` ${dim(json(body))}`}`)
      line(`  ← ${status} ${dim(json(answer))}`)
      if (due !== undefined) line(red(`  ${due} was due`))
    },
  }
}

/** One line, with tokens shortened: they are long, and only their change matters here. */
function json(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' && member.length > 80 ? `${member.slice(0, 12)}…${member.slice(-6)}` : member,
  )
}
