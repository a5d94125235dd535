// Checks responses against the OpenAPI document, and records which described responses were seen.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'vitest'

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

interface Header {
  $ref?: string
  required?: boolean
  schema?: object
}

interface Response {
  $ref?: string
  headers?: Record<string, Header>
  content?: Record<string, { schema: object }>
}

export interface DescribedOperation {
  operationId: string
  security: readonly object[]
  responses: Record<string, Response>
  requestBody?: { content: Record<string, { schema: object }> }
}

export interface DocumentText {
  paths: Record<string, Record<string, DescribedOperation>>
  components: Record<string, Record<string, object>>
}

export type Checker = ReturnType<typeof createChecker>

export function createChecker(document: DocumentText) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  ajv.addFormat('date', /^\d{4}-\d\d-\d\d$/)
  ajv.addFormat('uri', true)
  ajv.addSchema({ ...document, $id: 'document' } as object)
  const seen = new Set<string>()

  /**
   * Returns the part and its JSON pointer. If the part is a `$ref`, returns the referenced part and the pointer of that
   * part.
   */
  function found<T extends { $ref?: string }>(part: T, pointer: string): [T, string] {
    if (part.$ref === undefined) return [part, pointer]
    const steps = part.$ref.slice(2).split('/')
    const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document)
    return [target as T, part.$ref]
  }

  function operation(method: string, path: string): [DescribedOperation, string] {
    const described = document.paths[path]?.[method.toLowerCase()]
    if (described === undefined) throw new Error(`${method} ${path} is not described`)
    return [described, `#/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}`]
  }

  function valid(pointer: string, value: unknown): boolean {
    // ajv parses the pointer as part of a URI, so special characters must be percent-encoded.
    const validate = ajv.compile({ $ref: `document${encodeURI(pointer)}` })
    const isValid = validate(value) as boolean
    errors = validate.errors ?? []
    return isValid
  }
  let errors: object[] = []

  return {
    operation,
    /**
     * Returns a text with operation ID, status and error code for every described response. Responses for the status
     * `default` are left out.
     */
    described(): string[] {
      return Object.values(document.paths).flatMap(item =>
        Object.values(item).flatMap(({ operationId, responses = {} }) =>
          Object.entries(responses).flatMap(([status, response]) => {
            if (status === 'default') return []
            const [{ headers }] = found(response, '')
            const codes = (headers?.['X-Peage-Error']?.schema as { enum?: string[] })?.enum ?? ['']
            return codes.map(code => `${operationId} ${status} ${code}`.trim())
          }),
        ),
      )
    },
    seen: () => [...seen],
    takesBody(method: string, path: string, body: unknown): boolean {
      const [{ requestBody }, pointer] = operation(method, path)
      expect(requestBody).toBeDefined()
      return valid(`${pointer}/requestBody/content/application~1json/schema`, body)
    },
    /**
     * Checks one response against the document.
     * @param path the path in the document, with `{id}` instead of an ID
     * @param as with `its status`, the response must match the description for its status; with `default`, it must
     * match the default response
     */
    check(method: string, path: string, answer: Answer, as: 'its status' | 'default' = 'its status'): void {
      const [{ operationId, responses }, pointer] = operation(method, path)
      const status = as === 'default' ? as : String(answer.status)
      const name = `${operationId} ${answer.status} ${answer.headers['x-peage-error'] ?? ''}`.trim()
      const listed = responses[status]
      if (listed === undefined) throw new Error(`${name} is not described: ${answer.text}`)
      const [response, at] = found(listed, `${pointer}/responses/${status}`)

      for (const [field, given] of Object.entries(response.headers ?? {})) {
        const [header, headerAt] = found(given, `${at}/headers/${field}`)
        const received = answer.headers[field.toLowerCase()]
        const value = Array.isArray(received) ? received.join(', ') : received
        if (header.required) expect([name, field, value]).toEqual([name, field, expect.any(String)])
        if (value !== undefined)
          expect([name, field, value, valid(`${headerAt}/schema`, value), errors]).toEqual([
            name,
            field,
            value,
            true,
            [],
          ])
      }
      for (const field of [
        'x-peage-error',
        'location',
        'retry-after',
        'www-authenticate',
        'content-security-policy',
      ])
        if (answer.headers[field] !== undefined) {
          const fields = Object.keys(response.headers ?? {}).map(key => key.toLowerCase())
          expect([
            name,
            fields.includes(field) || (field === 'retry-after' && answer.status === 401),
            field,
          ]).toEqual([name, true, field])
        }

      const [type] = String(answer.headers['content-type'] ?? '').split(';')
      expect([name, Object.keys(response.content ?? { '': {} })]).toEqual([name, [type]])
      if (type === 'application/json' && response.content?.[type]?.schema !== undefined) {
        const isValid = valid(`${at}/content/application~1json/schema`, JSON.parse(answer.text))
        expect([name, isValid, errors, answer.text]).toEqual([name, true, [], answer.text])
      }
      if (as !== 'default') seen.add(name)
    },
  }
}
