// Reads the built files of the console. Their names contain a hash, and each file is already compressed.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

export interface Asset {
  readonly type: string
  /** The file's content in each content coding. */
  readonly bodies: ReadonlyMap<Coding, Buffer>
}

export type Coding = 'br' | 'gzip' | 'identity'

export interface ConsoleAssets {
  readonly page: Asset
  /** The files by name. */
  readonly files: ReadonlyMap<string, Asset>
}

/** The relative path leads to the same folder from `src/` and from `dist/`. */
const built = fileURLToPath(new URL('../../../dist/console/', import.meta.url))

/** Whether the console was built. A separate build step creates it, not the TypeScript compiler. */
export const isConsoleBuilt = existsSync(`${built}/manifest.json`)

/** @throws if the console was not built */
export async function readConsoleAssets(folder = built): Promise<ConsoleAssets> {
  const manifest = JSON.parse(await readFile(`${folder}/manifest.json`, 'utf8')) as {
    page: string
    assets: Record<string, { type: string }>
  }
  const read = async (name: string, type: string): Promise<Asset> => {
    const [identity, br, gzip] = await Promise.all(
      ['', '.br', '.gz'].map(suffix => readFile(`${folder}/${name}${suffix}`)),
    )
    if (identity === undefined || br === undefined || gzip === undefined)
      throw new Error(`${name} is missing`)
    return {
      type,
      bodies: new Map<Coding, Buffer>([
        ['br', br],
        ['gzip', gzip],
        ['identity', identity],
      ]),
    }
  }
  const files = await Promise.all(
    Object.entries(manifest.assets).map(async ([name, { type }]) => [name, await read(name, type)] as const),
  )
  return { page: await read(manifest.page, 'text/html; charset=utf-8'), files: new Map(files) }
}

/**
 * Returns the best coding that the client accepts (RFC 9110 §12.5.3).
 * @param accepted the value of `Accept-Encoding`
 */
export function chooseCoding(accepted: string | undefined): Coding {
  const weights = new Map(
    (accepted ?? '').split(',').map(item => {
      const [coding = '', ...parameters] = item.toLowerCase().split(';')
      const weight = parameters
        .map(parameter => /^\s*q=([\d.]+)\s*$/.exec(parameter)?.[1])
        .find(q => q !== undefined)
      return [coding.trim(), Number(weight ?? 1)]
    }),
  )
  const isAccepted = (coding: Coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0
  return (['br', 'gzip'] as const).find(isAccepted) ?? 'identity'
}
