// Shows a table. On a narrow page, each row is shown as a card.
import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly title: string
  cell(row: Row): ComponentChildren
  readonly isNumber?: boolean
}

export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string | number
}) {
  return (
    <table>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, isNumber }) => (
            <th key={title} scope="col" class={isNumber ? 'number' : ''}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(row => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, isNumber }) => (
              <td key={title} data-label={title} class={isNumber ? 'number' : ''}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Shows the buttons that open the first page and the next page of a list. */
export function Paging({
  cursor,
  next,
  onGo,
  texts,
}: {
  cursor: string | undefined
  next: string | null
  onGo: (cursor: string | undefined) => void
  texts: { more: string; first: string }
}) {
  if (cursor === undefined && next === null) return null
  return (
    <p class="paging">
      {cursor !== undefined && (
        <button type="button" onClick={() => onGo(undefined)}>
          {texts.first}
        </button>
      )}
      {next !== null && (
        <button type="button" onClick={() => onGo(next)}>
          {texts.more}
        </button>
      )}
    </p>
  )
}
