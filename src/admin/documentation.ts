// Serves the OpenAPI document: JSON for programs, an HTML page for people (our addition to CONTRACT §7).
import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Type } from '../config/schema/type.ts'
import type { Operation } from '../openapi/operation.ts'
import { pageStyle } from '../openapi/page.ts'
import { admissionRefusals, type OperatorRequest } from './api/endpoint.ts'
import { requireRole } from './api/roles.ts'

export const documentation = {
  document: {
    method: 'GET',
    path: '/openapi.json',
    id: 'showDocument',
    summary: 'This document',
    caller: 'reader',
    roles: ['read', 'support'],
    responses: {
      200: {
        description: 'OpenAPI 3.1.',
        body: Type.Unsafe<object>({ type: 'object', description: 'An OpenAPI document.' }),
      },
    },
    refusals: admissionRefusals,
  },
  page: {
    method: 'GET',
    path: '/docs',
    id: 'showPage',
    summary: 'This document as a page',
    description: 'Browsers ask for a name and a password: any name, and the token.',
    caller: 'reader',
    roles: ['read', 'support'],
    responses: {
      200: {
        description: 'Without scripts; nothing is loaded from elsewhere.',
        mediaType: 'text/html',
        headers: { 'content-security-policy': 'Nothing but the page itself.' },
      },
    },
    refusals: admissionRefusals,
  },
} as const satisfies Record<string, Operation>

/** The same for every request: it describes the program, not the installation. */
export interface Documentation {
  /** JSON. */
  readonly document: string
  /** HTML. */
  readonly page: string
}

/**
 * @param app whose every request carries an operator's token
 * @param render called once, at the first request for it
 */
export function serveDocumentation(app: FastifyInstance, render: () => Promise<Documentation>): void {
  let rendered: Promise<Documentation> | undefined
  const get = () => {
    rendered ??= render()
    return rendered
  }
  app.get(documentation.document.path, async ({ operator }: OperatorRequest, reply) => {
    requireRole(documentation.document, operator)
    return reply.type('application/json; charset=utf-8').send((await get()).document)
  })
  app.get(documentation.page.path, async ({ operator }: OperatorRequest, reply) => {
    requireRole(documentation.page, operator)
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', policy)
      .send((await get()).page)
  })
}

const style = hash('sha256', pageStyle, 'base64')

/** Forbids scripts, loading anything, and framing by other pages. */
const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
