// Resolves the aliases of a YAML document.
import { type Alias, type Document, type Node, visit } from 'yaml'

/** Maps each alias to the last node before it with its anchor. The library itself searches again for every alias. */
export function resolveAliases(document: Document): Map<Alias, Node> {
  const anchored = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Value(_, node) {
      if (node.anchor !== undefined) anchored.set(node.anchor, node)
    },
    Alias(_, alias) {
      const target = anchored.get(alias.source)
      if (target !== undefined) targets.set(alias, target)
    },
  })
  return targets
}
