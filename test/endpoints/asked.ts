// What the guards and the server tell an endpoint, apart from the user and the body.
export const asked = {
  client: '',
  parameter: '',
  userAgent: undefined,
  credential: 'access_token',
  sessionId: undefined,
  apiTokenId: undefined,
} as const
