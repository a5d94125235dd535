// `peage schema`: prints the JSON Schema of gateway.yaml, as committed in gateway.schema.json.
import { Command } from 'commander'
import type { Io } from './io.ts'
import { print } from './print.ts'

export function schemaCommand(io: Io): Command {
  return new Command('schema').description('print the JSON Schema of gateway.yaml').action(async () => {
    const { jsonSchema } = await import('../config/json-schema.ts')
    await print(io.stdout, [`${JSON.stringify(jsonSchema(), null, 2)}\n`])
  })
}
