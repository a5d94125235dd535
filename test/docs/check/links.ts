// Finds links of a page whose target file or heading does not exist in this repository.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns each dead link as `page:line: target`. */
export function deadLinks(page: string): string[] {
  return readFileSync(page, 'utf8')
    .split('\n')
    .flatMap((line, index) =>
      [...line.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"\s]+)"/g)]
        .map(([, link, attribute = '']) => link ?? attribute)
        .filter(target => !/^[a-z]+:/.test(target) && !leads(page, target))
        .map(target => `${page}:${index + 1}: ${target}`),
    )
}

function leads(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : join(dirname(page), path)
  if (!existsSync(file)) return false
  return anchor === undefined || (statSync(file).isFile() && anchorsOf(file).includes(anchor))
}

/** Returns the anchors that GitHub derives from the headings of a page. */
export function anchorsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8').replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  )
}
