// The values that an endpoint receives from the guards and the server, except the user and the body.
export const asked = {
  client: '',
  parameter: '',
  userAgent: undefined,
  credential: 'access_token',
  sessionId: undefined,
  apiTokenId: undefined,
} as const
