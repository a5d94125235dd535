// The client disconnected before its response: neither a refusal nor a fault.

export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected'
}
