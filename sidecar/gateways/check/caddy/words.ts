/** Words of a directive. */
import type { Segment } from '../../read/caddyfile.ts'

export const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/))

/** The first argument, where it is a matcher: `*` matches everything. */
export const matcherOf = ({ words: [, first = ''] }: Segment): string | null => (/^[/@]/.test(first) ? first : null)

/** What follows the name and the matcher. */
export const argumentsOf = ({ words: all }: Segment): readonly string[] =>
  all.slice(/^([/@]|\*$)/.test(all[1] ?? '') ? 2 : 1)

/** Whether Caddy, or its environment, puts something in its place before it reads the file. */
export const isReplaced = (word: string): boolean => /\{(\$|args|block)/.test(word)
