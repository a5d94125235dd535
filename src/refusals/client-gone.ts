// The client left before it was answered: nobody is refused anything, and nothing is wrong.

export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected'
}
