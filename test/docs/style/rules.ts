// The rules of docs/dev/style.md that a regular expression can check.

export interface Rule {
  readonly name: string
  /** Matches a sentence that breaks the rule. In the sentence, each text in backticks has been replaced by `code`. */
  readonly pattern: RegExp
  /** The text that the author should write instead. */
  readonly hint: string
}

// biome-ignore format: one rule is one line
export const rules: readonly Rule[] = [
  { name: 'begins with What or Who', pattern: /^(?:[Ww]hat(?:ever)?|[Ww]ho(?:ever)?|Whose)\b(?!.*\?)/, hint: 'begin with the subject' },
  { name: 'begins with Of', pattern: /^Of (?!course\b)/, hint: 'begin with the subject' },
  { name: 'begins with One that', pattern: /^(?:one|those|the ones?) (?:that|who|which|whose|with|without)\b/i, hint: 'repeat the noun' },
  { name: 'that of', pattern: /\b(?:that|those) of\b/i, hint: 'repeat the noun' },
  { name: 'the one before', pattern: /\bthe ones? before\b|\b(?:of|from) before(?=[.,;:)]|$)/i, hint: '"previous", or the noun with the event: "tokens issued before the change"' },
  { name: 'such without a noun', pattern: /(?<!\bas )\bsuch(?=[.,;:)]|$| (?:is|are|was|were|has|have|may|can|that|who|which|of|by|in|to|and|or)\b)/i, hint: 'repeat the noun' },
  { name: 'the former', pattern: /\bthe latter\b|\bthe former(?=[.,;:)]|$| (?:is|are|was|were|has|have|and|of|by|in|to)\b)/i, hint: 'repeat the noun' },
  { name: 'but for', pattern: /(?<!\bnot\b.*)\bbut for\b/i, hint: '"except"' },
  { name: 'anew', pattern: /\banew\b/i, hint: '"again"' },
  { name: 'all the same', pattern: /(?<!\b(?:is|are|was|were|be) )\ball the same\b/i, hint: '"still"' },
  { name: 'alone for only', pattern: /(?<!\b(?:let|leaves?|left|leave it) |\()\balone\b(?! and\b| or\b)/i, hint: '"only"' },
  { name: 'nobody', pattern: /\b(?:nobody|somebody|everybody|whoever)\b/i, hint: 'name the client, the user or the process' },
  { name: 'stands', pattern: /\bstands?\b(?! (?:for|in for|up)\b)|\bstood\b/i, hint: '"is", "contains"; for still: "stalls", "is blocked"' },
  { name: 'holds to', pattern: /\b(?:is|are|be|was|were) held to\b|\b(?:holds?|held) (?:it|them|both|all|itself|themselves|\w+) to\b/i, hint: '"checks … against", "follows"' },
  { name: 'is told', pattern: /\b(?:is|are|was|were|be|been) told\b/i, hint: '"receives", "is notified", "is reported"' },
  { name: 'tells', pattern: /\btells?\b(?!(?: [\w-]+){0,4} (?:from|apart)\b)/i, hint: '"shows", "prints", "reports", "notifies"' },
  { name: 'says', pattern: /\b(?:says|said)\b(?!:)/i, hint: '"contains", "shows", "prints", "means"' },
  { name: 'is asked', pattern: /\basks? of\b|\basked of\b/i, hint: '"requests", "requires", "queries"' },
  { name: 'where for a condition', pattern: /^where\b[^?]*,[^?]*$|\bwhere (?:there (?:is|are|was|were)|no|none)\b/i, hint: '"if" or "without"' },
  { name: 'gone or over', pattern: /\b(?:is|are|was|were) (?:gone|over)(?=[.,;:)]|$)/i, hint: '"expired", "deleted", "closed", "ended"' },
  { name: 'else for otherwise', pattern: /\bor else\b|[,;] else\b/i, hint: '"otherwise"' },
  { name: 'becomes of', pattern: /\b(?:becomes?|became|comes?|came) of\b/i, hint: '"result", "outcome"' },
  { name: 'in the place of', pattern: /\bin the place of\b/i, hint: '"instead of"' },
  { name: 'old word', pattern: /\b(?:lest|thereof|therein|thereby|thereupon|whereby|hence|whence|save for|for want of|beforehand|hitherto|likewise)\b/i, hint: 'a plain, current word' },
]

/** The maximum number of words in a sentence, and in a cell of a table. */
export const limits = { sentence: 30, cell: 40 }
