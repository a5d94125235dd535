// The schema of the `events` section: the service that receives events about users.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'

export const eventTypes = [
  'user.created',
  'user.email_changed',
  'user.email_verified',
  'user.plan_changed',
  'user.deactivated',
  'user.activated',
  'user.deleted',
] as const

export type EventType = (typeof eventTypes)[number]

export const events = section(
  {
    url: formatted('event_url', {
      description:
        'The service that is told: http:// or https://, private networks included. Empty: none is.',
      default: '',
    }),
    secret: formatted('event_secret', {
      description: 'What events are signed with, after Standard Webhooks. Needed where url is set.',
      default: '',
    }),
    types: Type.Array(Type.Enum(eventTypes), {
      title: 'a list of events',
      description: 'Those that are told. Omitted: all.',
      minItems: 1,
      default: [...eventTypes],
    }),
  },
  {
    description:
      'What happens to users, told to one service. Omit the section, or leave url empty, to tell none.',
  },
)
