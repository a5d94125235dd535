// `peage schema`: prints the JSON Schema of gateway.yaml, as committed in gateway.schema.json.
import { Command } from 'commander'
import { jsonSchema } from '../config/json-schema.ts'
import type { Io } from './io.ts'

export function schemaCommand(io: Io): Command {
  return new Command('schema').description('print the JSON Schema of gateway.yaml').action(() => {
    io.stdout.write(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
  })
}
