// The `subscription` section: where plans are paid for (CONTRACT §5).
import { formatted, section } from './builders.ts'

export const subscription = section(
  {
    upgrade_url: formatted('upgrade_url', {
      description:
        'Where POST /api/v1/subscription/upgrade sends the user, {user_id} and {plan} filled in. Empty: nowhere, 501.',
      default: '',
    }),
  },
  { description: 'How users come to another plan.', default: {} },
)
