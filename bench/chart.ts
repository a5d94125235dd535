// Draws a chart of the CPU time per request of each row, relative to the base row. The dot of a row is the median of
// all rounds. The line of a row reaches from the lower to the upper quartile.
import type { Spread } from './spread.ts'

const left = 270
const right = 90
const width = 900
const step = 26
const top = 58

/** The colors of the chart. `ours` is for the rows of the gateway, `others` for all other rows. */
export type Colors = Readonly<Record<'page' | 'words' | 'faint' | 'base' | 'ours' | 'others', string>>

export const light: Colors = {
  page: '#fff',
  words: '#222',
  faint: '#ddd',
  base: '#555',
  ours: '#b3261e',
  others: '#37618e',
}

export interface Charted {
  readonly name: string
  readonly ratio: Spread
}

/** Returns an SVG. */
export function chart(rows: readonly Charted[], title: string, colors: Colors): string {
  const all = rows.flatMap(({ ratio }) => [ratio.lowerQuartile, ratio.upperQuartile])
  const low = Math.min(0.1, ...all)
  const high = Math.max(2, ...all)
  // The scale is logarithmic. So twice the base cost and half the base cost have the same distance from the base.
  const x = (ratio: number) => left + (Math.log(ratio / low) / Math.log(high / low)) * (width - left - right)
  const height = top + rows.length * step + 30
  const ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].filter(tick => tick >= low && tick <= high)
  const grid = ticks.map(
    tick =>
      `<line x1="${at(x(tick))}" x2="${at(x(tick))}" y1="${top - 12}" y2="${height - 24}" stroke="${tick === 1 ? colors.base : colors.faint}"/>` +
      text(x(tick), height - 8, `${tick}×`, 'middle', colors.base),
  )
  const marks = rows.map(({ name, ratio }, index) => {
    const y = top + index * step
    const color = /^(gateway|Péage)/.test(name) ? colors.ours : colors.others
    return (
      text(left - 12, y + 4, name, 'end', colors.words) +
      `<line x1="${at(x(ratio.lowerQuartile))}" x2="${at(x(ratio.upperQuartile))}" y1="${y}" y2="${y}" stroke="${color}" stroke-width="3"/>` +
      `<circle cx="${at(x(ratio.median))}" cy="${y}" r="5" fill="${color}"/>` +
      text(width - 12, y + 4, ratio.median.toFixed(2), 'end', colors.words)
    )
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" role="img" aria-label="${escaped(title)}">
<rect width="${width}" height="${height}" fill="${colors.page}"/>
${text(12, 22, title, 'start', colors.words)}
${[...grid, ...marks].join('\n')}
</svg>
`
}

function text(x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end', color: string) {
  return `<text x="${at(x)}" y="${y}" text-anchor="${anchor}" fill="${color}">${escaped(words)}</text>`
}

function escaped(words: string) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

function at(position: number) {
  return position.toFixed(1)
}
