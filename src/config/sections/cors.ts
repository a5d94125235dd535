// The schema of `cors`, for the server or for one route: which web pages of other origins may read responses.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'

const fieldName = Type.String({
  title: 'a header name such as X-Total-Count',
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
})

export const cors = section(
  {
    origins: Type.Array(formatted('origin'), {
      title: 'a list of at least one origin',
      description: 'Origins whose pages may read responses, or * for every origin.',
      minItems: 1,
    }),
    credentials: Type.Boolean({
      description: 'Allow pages to send cookies and HTTP authentication. Not possible with the origin *.',
      default: false,
    }),
    expose_headers: Type.Array(fieldName, {
      description: 'Upstream response headers that pages may read, in addition to the gateway’s own headers.',
      default: [],
    }),
    max_age: formatted('duration', {
      description: 'Time that browsers may cache the response to a preflight request.',
      default: '10m',
    }),
  },
  { description: 'Cross-origin requests from browsers.' },
)
