// Prints the demo to a terminal or a file.

/**
 * @typedef {object} Exchange
 * @property {string} title
 * @property {string} method
 * @property {string} url
 * @property {object | undefined} body
 * @property {number} status
 * @property {unknown} answer
 * @property {number | undefined} due the expected status code; undefined if the response has the expected status code
 */

/** @typedef {ReturnType<typeof createPrinter>} Printer */
/** @typedef {{ kind: string, to: string, subject: string, text: string }} Mail */

/** @param {NodeJS.WriteStream} out */
export function createPrinter(out) {
  /** @type {(code: number) => (text: string) => string} */
  const paint = code => text => (out.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text)
  const [bold, dim, green, red] = [paint(1), paint(2), paint(32), paint(31)]
  const line = (text = '') => out.write(`${text}\n`)
  let step = 0
  return {
    line,
    /** @param {string} text */
    heading: text => line(bold(text)),
    /** @param {Exchange} exchange */
    exchange({ title, method, url, body, status, answer, due }) {
      step += 1
      const mark = due === undefined ? green('✓') : red('✗')
      line()
      line(`${mark} ${bold(`${step}. ${title}`)}`)
      line(`  → ${method} ${new URL(url).pathname}${body === undefined ? '' : ` ${dim(json(body))}`}`)
      line(`  ← ${status} ${dim(json(answer))}`)
      if (due !== undefined) line(red(`  expected ${due}`))
    },
    /** @param {Mail} mail */
    mail({ to, subject, text }) {
      line(`  ✉ ${to}: ${bold(subject)}`)
      for (const part of text.trimEnd().split('\n')) line(`    ${dim(part)}`)
    },
  }
}

/** Returns the value as JSON in one line. Tokens and other long texts are shortened. @param {unknown} value */
function json(value) {
  return JSON.stringify(value, (_key, member) =>
    typeof member === 'string' && member.length > 80 ? `${member.slice(0, 12)}…${member.slice(-6)}` : member,
  )
}
