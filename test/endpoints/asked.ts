// Default values for calls of endpoints: everything that an endpoint receives, except the user and the body.
export const asked = {
  client: '',
  parameter: '',
  userAgent: undefined,
  credential: 'access_token',
  sessionId: undefined,
  apiTokenId: undefined,
} as const
