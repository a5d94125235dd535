// The default values with which tests call an endpoint. They cover everything that an endpoint receives, except the
// user and the body.
export const asked = {
  client: '',
  parameter: '',
  userAgent: undefined,
  credential: 'access_token',
  sessionId: undefined,
  apiTokenId: undefined,
} as const
