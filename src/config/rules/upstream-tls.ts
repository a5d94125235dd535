// Whether `tls` of an upstream can be what it was meant to be: it has an https target, and its file holds authorities.
import { X509Certificate } from 'node:crypto'
import type { Fault } from '../diagnostics.ts'
import { pointTo } from '../pointer.ts'
import type { Shape } from '../validate.ts'
import { reasonOf } from '../yaml/interpolate.ts'
import { maxFileBytes, type ReadFile } from '../yaml/read-file.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'
import { declaredUpstreams } from './declared-upstreams.ts'

/** `tls` beside `http:` targets alone would promise what is not kept. */
export function checkTlsIsUsed(sheet: Sheet, shape: Shape): Fault[] {
  return upstreamsWithTls(sheet).flatMap(({ pointer, targets }) =>
    !Array.isArray(targets) ||
    !shape.sound(pointTo(pointer, 'targets')) ||
    targets.some(target => /^https:/i.test(target))
      ? []
      : [faultAt(sheet, pointTo(pointer, 'tls'), 'is for https targets, of which there is none here')],
  )
}

/** Reads the files of `tls.ca`. @param readFile throws where it cannot */
export function checkAuthorities(sheet: Sheet, shape: Shape, readFile: ReadFile): Fault[] {
  return upstreamsWithTls(sheet).flatMap(({ pointer, ca }) => {
    const at = pointTo(pointTo(pointer, 'tls'), 'ca')
    if (typeof ca !== 'string' || !shape.sound(at)) return []
    const message = whyNoAuthority(ca, readFile)
    return message === undefined ? [] : [faultAt(sheet, at, message)]
  })
}

interface WithTls {
  /** Of the upstream. */
  pointer: string
  /** Of any shape, as is `ca`. */
  targets: unknown
  ca: unknown
}

function upstreamsWithTls(sheet: Sheet): WithTls[] {
  return (declaredUpstreams(sheet) ?? []).flatMap(({ pointer, keys: { targets, tls } }) =>
    typeof tls === 'object' && tls !== null ? [{ pointer, targets, ca: (tls as { ca?: unknown }).ca }] : [],
  )
}

function whyNoAuthority(path: string, readFile: ReadFile): string | undefined {
  let text: string
  try {
    text = readFile(path, maxFileBytes)
  } catch (error) {
    return `cannot read the file ${JSON.stringify(path)} (${reasonOf(error)})`
  }
  const blocks = text.match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs) ?? []
  return blocks.length > 0 && blocks.every(isCertificate)
    ? undefined
    : 'holds no certificates in PEM, or broken ones'
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}
