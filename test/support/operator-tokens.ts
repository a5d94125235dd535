// Defines one token for each role of operators.
export const tokens = {
  all: 'a-token-for-operators-0123456789',
  support: 'a-token-for-support-012345678901',
  read: 'a-token-for-readers-012345678901',
  billing: 'a-token-for-billing-01234567890123',
}

/** The part of the `admin` section that contains these tokens. */
export const adminWithTokens = `, tokens: { ${Object.entries(tokens)
  .map(([may, token]) => `${may}: { token: ${token}, may: ${may} }`)
  .join(', ')} }`
