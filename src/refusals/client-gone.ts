// The client left before it was answered: nobody is refused anything, and nothing is wrong.

export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}
