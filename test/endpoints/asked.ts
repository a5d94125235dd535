// The default values with which tests call an endpoint. They cover everything that an endpoint receives, except the
// user and the body.
export const asked = {
  client: '',
  query: '',
  cookie: undefined,
  parameter: '',
  userAgent: undefined,
  sessionId: undefined,
  apiKey: undefined,
} as const
