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
        'http:// or https:// address of the service that receives events. It may be in a private network. Empty: no events.',
      default: '',
    }),
    secret: formatted('event_secret', {
      description: 'Secret that signs events (Standard Webhooks). Required if url is set.',
      default: '',
    }),
    types: Type.Array(Type.Enum(eventTypes), {
      title: 'a list of events',
      description: 'Types of events to send. Omitted: all.',
      minItems: 1,
      default: [...eventTypes],
    }),
  },
  {
    description:
      'Events about users, sent to one service. Omit the section, or leave url empty, to send none.',
  },
)
