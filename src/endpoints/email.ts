// The endpoints that verify or change one's email (CONTRACT §12, "Email"). No mails are sent yet, so no code is right.
import { Refusal } from '../refusals/refusal.ts'
import { emailOperations } from './email.openapi.ts'
import type { Endpoint } from './endpoint.ts'
import type { RequireSignedIn, SignedInEndpoint } from './signed-in.ts'

interface Dependencies {
  requireSignedIn: RequireSignedIn
  signedIn: SignedInEndpoint
}

export function createEmailEndpoints({ requireSignedIn, signedIn }: Dependencies): Endpoint[] {
  return [
    signedIn(emailOperations.requestVerification, async () => {
      throw new Refusal('mail_not_configured')
    }),
    {
      kind: 'open',
      operation: emailOperations.verify,
      async answer() {
        throw new Refusal('code_invalid')
      },
    },
    signedIn(emailOperations.requestChange, async () => {
      throw new Refusal('mail_not_configured')
    }),
    {
      kind: 'open',
      operation: emailOperations.confirmChange,
      // A token stands for itself: whoever has it opened the mail, and credentials beside it are not read.
      async answer({ body }, authenticate) {
        if (body.string('token').trim() === '') await requireSignedIn(await authenticate())
        throw new Refusal('code_invalid')
      },
    },
  ]
}
