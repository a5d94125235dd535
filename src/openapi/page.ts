// Renders the document as a page for people: one piece of HTML, without scripts.
import type { Document } from './document.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: Schema
}

interface Response {
  readonly description: string
  readonly content?: Content
}

interface PageOperation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly object[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Response | Reference>>
}

interface Reference {
  readonly $ref: string
}

/** The part of the document that the page shows. */
interface PageDocument {
  readonly info: Readonly<Record<'title' | 'version' | 'description', string>>
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, PageOperation | undefined>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
  }
}

const methods = ['get', 'post', 'patch', 'delete'] as const

export function renderPage(document: Document): string {
  const { info, tags, paths, components } = document as unknown as PageDocument
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap(method => {
      const operation = item[method]
      return operation === undefined ? [] : [{ path, method, operation }]
    }),
  )
  const resolve = (response: Response | Reference) =>
    '$ref' in response ? (components.responses[lastSegment(response.$ref)] as Response) : response
  const groups = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name))
    return `<h2 id="${slug(name)}">${escapeHtml(name)}</h2>\n<p>${prose(description)}</p>\n${own.map(one => renderOperation(one, resolve)).join('\n')}`
  })
  const contents = tags.map(({ name }) => `<a href="#${slug(name)}">${escapeHtml(name)}</a>`)
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<section id="schema-${name}"><h3>${escapeHtml(name)}</h3>${renderSchema(schema)}</section>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(info.title)} ${escapeHtml(info.version)}</title>
<style>${pageStyle}</style>
</head>
<body>
<h1>${escapeHtml(info.title)} <small>${escapeHtml(info.version)}</small></h1>
<p>${prose(info.description)}</p>
<nav>${[...contents, '<a href="#schemas">Schemas</a>', '<a href="openapi.json">openapi.json</a>'].join(' ')}</nav>
${groups.join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.join('\n')}
</body>
</html>
`
}

interface ShownOperation {
  readonly path: string
  readonly method: string
  readonly operation: PageOperation
}

function renderOperation(
  { path, method, operation }: ShownOperation,
  resolve: (response: Response | Reference) => Response,
): string {
  const { operationId, summary, description, security, parameters, requestBody, responses } = operation
  const callers = security.flatMap(scheme => Object.keys(scheme))
  const body = requestBody?.content['application/json']?.schema
  return `<section id="${operationId}">
<h3><b class="${method}">${method.toUpperCase()}</b> <code>${escapeHtml(path)}</code></h3>
<p>${prose(`${summary}.`)}${description === undefined ? '' : ` ${prose(description)}`}</p>
<p class="note">${callers.length === 0 ? 'Anybody may call.' : `With ${callers.map(name => `<code>${escapeHtml(name)}</code>`).join(' or ')}.`}</p>
${parameters === undefined ? '' : table(['parameter', 'in', 'is'], parameters.map(parameterRow))}
${body === undefined ? '' : `<h4>Body</h4>${renderSchema(body)}`}
${table(
  ['status', 'meaning', 'body'],
  Object.entries(responses).map(([status, response]) => responseRow(status, resolve(response))),
)}
</section>`
}

function parameterRow({ name, in: place, schema }: Parameter): string[] {
  return [`<code>${escapeHtml(name)}</code>`, place, typeOf(schema)]
}

function responseRow(status: string, { description, content = {} }: Response): string[] {
  const [type = 'none', media] = Object.entries(content)[0] ?? []
  const body = type === 'application/json' && media ? typeOf(media.schema) : escapeHtml(type)
  return [status === 'default' ? 'any' : status, prose(description), body]
}

function renderSchema(schema: Schema): string {
  if (schema.properties === undefined) return `<p>${typeOf(schema)}</p>`
  const rows = Object.entries(schema.properties).map(([name, member]) => [
    `<code>${escapeHtml(name)}</code>${schema.required?.includes(name) ? '' : '?'}`,
    typeOf(member),
  ])
  const description = schema.description === undefined ? '' : `<p>${prose(schema.description)}</p>`
  return description + table(['member', 'is'], rows)
}

/** The type of a value and its description, in one line. */
function typeOf(schema: Schema): string {
  const description = schema.description === undefined ? '' : ` ${prose(schema.description)}`
  return `<i>${kindOf(schema)}</i>${description}`
}

function kindOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = lastSegment(schema.$ref)
    return `<a href="#schema-${name}">${escapeHtml(name)}</a>`
  }
  if (schema.anyOf !== undefined) return schema.anyOf.map(kindOf).join(' or ')
  if (schema.enum !== undefined)
    return schema.enum.map(value => escapeHtml(JSON.stringify(value))).join(' | ')
  if (schema.type === 'array') return `list of ${kindOf(schema.items ?? {})}`
  if (schema.properties !== undefined) {
    const members = Object.entries(schema.properties).map(
      ([name, member]) => `${escapeHtml(name)}: ${kindOf(member)}`,
    )
    return `{ ${members.join(', ')} }`
  }
  return escapeHtml([schema.type ?? 'anything', schema.format].filter(Boolean).join(', '))
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map(cell => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  return `<table>${line(heads, 'th')}${rows.map(row => line(row, 'td')).join('\n')}</table>`
}

function lastSegment(reference: string): string {
  return reference.split('/').at(-1) ?? ''
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z]+/g, '-')
}

/** Escapes the text and renders backquoted parts as code. */
function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return text.replace(/[&<>"]/g, character => entities[character] ?? '')
}

/** Exported for the Content-Security-Policy. */
export const pageStyle = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --dim: #777 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 small { color: var(--dim); font-weight: normal }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) }
h3 { margin: 0 0 .5rem; font-size: 1.05rem }
h4 { margin: 1rem 0 .3rem }
nav a { margin-right: 1rem }
section { margin: 1.5rem 0; padding: 1rem; border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: .2em }
i { font-style: normal; font-family: ui-monospace, monospace; font-size: .85em }
b { font-family: ui-monospace, monospace; padding: .1em .5em; border-radius: .2em; color: #fff; background: #555 }
b.get { background: #1a6b3c } b.post { background: #1d4f91 } b.patch { background: #8a5a00 } b.delete { background: #a3262a }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .5rem 0 }
th { text-align: left; color: var(--dim); font-weight: normal }
th, td { padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); vertical-align: top }
.note { color: var(--dim); margin: .3rem 0 }
`
