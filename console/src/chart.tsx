// A chart of the last 15 minutes.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { language, number } from './language.ts'
import { useSignal } from './signal.ts'

export interface Line {
  label: string
  values: (number | null)[]
  /** A custom property of the style sheet. */
  color: string
}

export function Chart({ title, at, lines }: { title: string; at: number[]; lines: Line[] }) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const chosen = useSignal(language)
  const names = lines.map(({ label }) => label).join()
  // The data follow below, without a new chart.
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const style = getComputedStyle(document.documentElement)
    const color = (name: string) => style.getPropertyValue(name).trim()
    const axis = {
      stroke: color('--muted'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
    }
    const formatTime = new Intl.DateTimeFormat(chosen, { timeStyle: 'short' })
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { live: true },
        cursor: { y: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, values: (_, marks) => marks.map(mark => formatTime.format(mark * 1_000)) },
          { ...axis, size: 56, values: (_, marks) => marks.map(mark => number(mark, 1)) },
        ],
        series: [
          { label: '', value: (_, mark) => (mark === null ? '–' : formatTime.format(mark * 1_000)) },
          ...lines.map(({ label, color: name }) => ({
            label,
            stroke: color(name),
            width: 2,
            points: { show: false },
            value: (_: uPlot, value: number | null) => number(value, 2),
          })),
        ],
      },
      [at, ...lines.map(({ values }) => values)] as uPlot.AlignedData,
      element,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 180 }))
    resized.observe(element)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => made.redraw()
    dark.addEventListener('change', redraw)
    return () => {
      dark.removeEventListener('change', redraw)
      resized.disconnect()
      made.destroy()
    }
  }, [names, chosen])
  useEffect(() => {
    plot.current?.setData([at, ...lines.map(({ values }) => values)] as uPlot.AlignedData)
  }, [at, lines])
  const latest = lines.map(({ label, values }) => `${label} ${number(values.at(-1), 1)}`).join(', ')
  return (
    <figure class="card">
      <figcaption>{title}</figcaption>
      <div ref={place} role="img" aria-label={`${title}: ${latest}`} />
    </figure>
  )
}
