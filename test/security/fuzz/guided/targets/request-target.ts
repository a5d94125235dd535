// An accepted request target has only one interpretation. The gateway uses this interpretation to match routes.
import { parseRequestTarget } from '../../../../../src/gate/parsing/request-target.ts'
import { corpus } from '../../../corpus.ts'
import { readings } from '../../../readings.ts'
import { promise, type Target } from '../target.ts'

const dictionary = [
  ...[
    '/',
    '//',
    '/./',
    '/../',
    '/..;/',
    '%2e',
    '%2E%2e',
    '%2f',
    '%5c',
    '%25',
    '%252e',
    '%25252f',
    '%00',
    '%3b',
  ],
  ...[
    ';a=b',
    '?',
    '#',
    '%23',
    '%3f',
    '%20',
    '..',
    '...',
    '. ',
    '\\',
    '%c0%af',
    '%c3%a9',
    '%e2%84%aa',
    '%ef%bc%8f',
  ],
  ...['http://', 'https://gw.test', '@', ':80', '/api/v1/private', '/PUBLIC', '*', '%u002f', '%ff', '%c2%85'],
]

export const requestTarget: Target = {
  seeds: corpus.paths.map(({ raw_target }) => raw_target).filter(target => target.length < 200),
  dictionary,
  maxLength: 400,
  maxMs: 100,
  covers: /\/src\/gate\/parsing\//,
  run(input) {
    const target = parseRequestTarget(input)
    // The second call returns the cached result.
    promise(same(target, parseRequestTarget(input)), 'returns a different result from the cache')
    if (target === undefined) return 'refused'
    const { authority, path, query, unmergedPath, rawSegments, segments, ambiguities } = target
    promise(/^\/[!-~]*$/.test(path) && !/[?#\\]|\/\//.test(path), 'forwards an invalid path', path)
    promise(query === '' || /^\?[^\0- #\x7f]*$/.test(query), 'forwards an invalid query', query)
    const sent = authority === undefined ? input : input.slice(input.indexOf('//') + 2 + authority.length)
    promise(
      [sent, `/${sent}`].includes((unmergedPath ?? path) + query),
      'forwards a different target than the client sent',
      target,
    )
    promise(
      segments.length === rawSegments.length,
      'matches a different number of segments than it forwards',
      target,
    )
    promise(
      segments.every(segment => segment !== '.' && segment !== '..'),
      'accepts a dot segment',
      segments,
    )
    // If the forwarded target is parsed again, the result must be the same.
    const again = parseRequestTarget(path + query)
    promise(
      same(again, { ...target, authority: undefined, unmergedPath: undefined }),
      'reads the forwarded target differently',
      target,
      again,
    )
    // Compares the segments with the paths that lenient servers read. These servers decode one to three times, remove
    // parameters and resolve dot segments.
    const matched = resolved(segments)
    const [, ...decoded] = readings(path)
    if (ambiguities === 0) {
      for (const reading of decoded)
        promise(reading === matched, 'accepts a path with two interpretations', path, reading, matched)
    }
    // Compares the path with the path that the URL parser of browsers (WHATWG) reads.
    const url = new URL(path, 'http://gw.test')
    const named = url.pathname
      .split('/')
      .filter(part => part !== '')
      .map(decodeURIComponent)
      .join('/')
    const ours = rawSegments
      .map(decodeURIComponent)
      .filter(part => part !== '')
      .join('/')
    promise(named === ours, 'reads a different path than a URL parser', path, url.pathname)
    const kind = authority === undefined ? '' : 'absolute '
    return `${kind}${unmergedPath === undefined ? '' : 'merged '}${ambiguities}${query === '' ? '' : ' query'}`
  },
  forget() {
    for (let i = 0; i <= 2_000; i++) parseRequestTarget(`/forget/${i}`)
  },
}

function same(one: object | undefined, other: object | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Returns the segments that are used to match routes, as a path in the format of readings.ts. */
function resolved(segments: readonly string[]): string {
  const [reading = ''] = readings(
    Buffer.from(`/${segments.join('/')}`)
      .toString('latin1')
      .replaceAll('%', '%25'),
  )
  return reading.replaceAll('%25', '%')
}
