/** The tables of docs/faults.md: faults by what was promised of them, and what was measured. */
import { type Cell, table } from '../bench/report/page.ts'
import type { Fault } from './catalogue.ts'
import type { Verdict } from './judgement.ts'

const PROMISES = [
  ['unaffected', 'unaffected', 'No question goes unanswered.'],
  ['unaffected', 'kept', 'No question is lost.'],
  [
    'routed around',
    'routed around',
    'The other PDPs answer within 4 s; after that 1 % of the questions at most go unanswered.',
  ],
  ['unaffected', 'back', 'Questions without a DPoP proof are answered; those with a proof may be 503 while it lasts.'],
  ['back', 'back', 'Questions may fail (401, 502, 503, 504 or no answer) while it lasts.'],
] as const satisfies readonly (readonly [Fault['questions'], Fault['questions'], string])[]

export type Played = { readonly fault: Fault; readonly verdict: Verdict }

export const faultTables = (played: readonly Played[]): string =>
  PROMISES.map(([questions, proofs, promise]) => {
    const rows = played
      .filter(({ fault }) => fault.questions === questions && (fault.proofs ?? fault.questions) === proofs)
      .map(({ verdict }) => rowOf(verdict))
    return `**${promise}**\n\n${table(['Fault', 'Unanswered', 'Slowest, s', 'Well after, s'], rows)}`
  }).join('\n\n')

const rowOf = ({ name, unavailable, asked, slowestAskMs, backMs }: Verdict): readonly Cell[] => [
  `\`${name}\``,
  `${unavailable}/${asked}`,
  seconds(slowestAskMs),
  seconds(backMs),
]

const seconds = (ms: number): string => (ms / 1_000).toFixed(1)
