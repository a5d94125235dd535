// The default arguments with which tests call an endpoint. Only the user and the body have no default.
export const asked = {
  client: '',
  query: '',
  cookie: undefined,
  parameter: '',
  userAgent: undefined,
  sessionId: undefined,
  apiKey: undefined,
} as const
