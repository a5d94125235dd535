// The schema of `cors`, for the server or for one route: which web pages of other origins may read responses.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'

const fieldName = Type.String({
  title: 'the name of a header field such as X-Total-Count',
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
})

export const cors = section(
  {
    origins: Type.Array(formatted('origin'), {
      title: 'a list of at least one origin',
      description: 'Exact origins, or * for every origin.',
      minItems: 1,
    }),
    credentials: Type.Boolean({
      description: 'Pages may send cookies and HTTP authentication along. Not with the origin *.',
      default: false,
    }),
    expose_headers: Type.Array(fieldName, {
      description: 'Fields of the upstream that pages may read, beside the gateway’s own.',
      default: [],
    }),
    max_age: formatted('duration', {
      description: 'How long browsers may keep the answer to a preflight.',
      default: '10m',
    }),
  },
  { description: 'Cross-origin requests of browsers.' },
)
