// Which node of a YAML document each of its aliases stands for.
import { type Alias, type Document, type Node, visit } from 'yaml'

/** What each alias stands for: the last node before it with its anchor. The library looks anew for every alias. */
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
