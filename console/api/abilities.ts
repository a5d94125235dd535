// Defines what the console offers to each role. The server itself checks what a role may do. The console only hides
// what the server would refuse.
import type { Role } from './types.ts'

export type Ability =
  | 'see-gateway'
  | 'explain'
  | 'see-access'
  | 'manage-access'
  | 'export'
  | 'change-plan'
  | 'change-user'
  | 'retry'

const abilities: Readonly<Record<Role, readonly Ability[]>> = {
  all: [
    'see-gateway',
    'explain',
    'see-access',
    'manage-access',
    'export',
    'change-plan',
    'change-user',
    'retry',
  ],
  read: ['see-gateway', 'explain', 'see-access'],
  support: ['see-gateway', 'explain', 'see-access', 'manage-access', 'export', 'retry'],
  billing: ['change-plan'],
}

export function can(role: Role, ability: Ability): boolean {
  return abilities[role].includes(ability)
}
