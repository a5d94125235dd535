// Shows one chart of the last 15 minutes.
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import type { Series } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { axisOf, pointsAlone } from './chart-scale.ts'

export interface Line {
  readonly label: string
  readonly values: Series
}

const height = 150

export function Chart({
  title,
  unit,
  at,
  lines,
}: {
  title: string
  unit: string
  at: readonly number[]
  lines: readonly Line[]
}) {
  const { number, language } = useSpeech()
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  const shape = lines.map(({ label }) => label).join('\n')
  const data: UPlot.AlignedData = [[...at], ...lines.map(({ values }) => [...values])]
  const latest = useRef(data)
  latest.current = data

  useEffect(() => {
    const element = box.current
    if (element === null) return
    const build = () => {
      plot.current?.destroy()
      plot.current = new UPlot(optionsOf(element, shape.split('\n'), language), latest.current, element)
    }
    build()
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    sizes.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', build)
    return () => {
      sizes.disconnect()
      scheme.removeEventListener('change', build)
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [shape, language])

  useEffect(() => plot.current?.setData(data), [data[0].at(-1), at])

  return (
    <figure>
      <figcaption>
        <span>
          <span class="chart-title">{title}</span> <span class="quiet">{unit}</span>
        </span>
        <span class="legend">
          {lines.map(({ label, values }, index) => (
            <span key={label} class={`line-${index % colors.length}`}>
              {lines.length > 1 && label} <b>{lastOf(values, value => number(value, 1))}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={box} class="chart" aria-hidden="true" />
    </figure>
  )
}

const colors = ['--line-0', '--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6']

function optionsOf(element: HTMLElement, labels: readonly string[], language: string): UPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const clock = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit' })
  const axis = {
    stroke: color('--quiet'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: color('--edge'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, axisOf(high).at(-1) ?? 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        size: 26,
        values: (_, ticks) => ticks.map(at => clock.format(at * 1_000)),
      },
      {
        ...axis,
        size: 44,
        splits: (_plot, _axis, _low, high) => axisOf(high),
        values: (_, ticks) => ticks.map(tick => compact(tick, language)),
      },
    ],
    series: [
      {},
      ...labels.map((label, index) => {
        const stroke = color(colors[index % colors.length] ?? '--line-0')
        const alone = (plot: UPlot) => pointsAlone(plot.data[index + 1] ?? [])
        return {
          label,
          stroke,
          width: 1.75,
          points: { show: false, size: 6, fill: stroke, filter: alone },
          ...(labels.length === 1 ? { fill: color('--fill') } : {}),
        }
      }),
    ],
  }
}

function compact(value: number, language: string): string {
  return new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 }).format(value)
}

function lastOf(values: Series, format: (value: number) => string): string {
  const last = values.findLast(value => value !== null)
  return last === undefined || last === null ? '–' : format(last)
}
