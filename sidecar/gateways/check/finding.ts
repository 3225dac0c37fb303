/** What is wrong in the configuration of a gateway, where, and what mends it. */
import type { Place } from '../read/source.ts'

export const FINDING_CODES = {
  skips_question: 'requests are forwarded that no door was asked about',
  other_bytes: 'the service gets something other than what the door checked',
  fails_open: 'requests are forwarded when the door cannot answer, or refuses',
  forgeable: 'a client, or somebody else, can say what only the gateway or the door may say',
  unseen: 'something that decides is not in the files',
} as const
export type FindingCode = keyof typeof FINDING_CODES

export type Finding = Place & { readonly code: FindingCode; readonly message: string; readonly fix: string }

/** Makes findings about one place. */
export const at =
  ({ file, line }: Place) =>
  (code: FindingCode, message: string, fix: string): Finding => ({ file, line, code, message, fix })
