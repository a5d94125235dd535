// The `webhooks` section: how alerts reach the receivers that users registered (CONTRACT §5).
import Type from 'typebox'
import { formatted, section } from './builders.ts'

export const webhooks = section(
  {
    allow_private_networks: Type.Boolean({
      description:
        'Receivers may be at loopback, private and reserved addresses. Only for tests and closed networks.',
      default: false,
    }),
    timeout: formatted('duration', {
      description: 'For one delivery, from the look-up of the name to the end of the answer.',
      default: '10s',
    }),
    retention: formatted('lifetime', {
      description: 'How long the log of deliveries is kept, from when each was emitted.',
      default: '30d',
    }),
  },
  { description: 'Alerts to users’ webhooks.', default: {} },
)
