/** Asks the PDP further checks about parts of an answer, for the sender of the request. */
import { setImmediate } from 'node:timers/promises'
import type { AccessClaims } from '../../pdp/shared/token/claims.ts'
import { FilterError } from '../http/edited-answer.ts'
import type { McpJudged } from '../mcp/demands.ts'
import type { RpcReply } from '../mcp/rpc-error.ts'
import type { PdpClient } from '../pdp-client/client.ts'
import { CHECKS_MAX, type PdpAnswer, type PdpQuestion } from '../pdp-client/question.ts'
import { PdpUnavailable } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import type { AnswerRule } from '../routes/answer-rule.ts'
import {
  buildItemQuestions,
  buildQuestions,
  type Check,
  type CheckDenial,
  type CheckValues,
  denialText,
  leavesOf,
  type Questions,
} from '../routes/checks.ts'
import { ANYBODY } from '../routes/mcp-rules.ts'
import type { Route } from '../routes/route.ts'
import { requestValues } from '../routes/values.ts'

/** A request and the question about it that the PDP has answered. */
type Asked = {
  /** The sender's claims; null: a guest. */
  readonly claims: AccessClaims | null
  readonly request: InboundRequest
  readonly parameters: readonly string[]
  readonly route: Route
  readonly question: PdpQuestion
}
type AskDeps = { readonly pdp: Pick<PdpClient, 'ask'> }

/**
 * True for each of these items for which the rule's check holds, all at one revision. Rejects with PdpUnavailable, with FilterError,
 * and with RequestError when an item lacks a value.
 */
export async function keeping(
  { claims, request, parameters, route, question }: Asked,
  rule: AnswerRule,
  items: readonly string[],
  { pdp }: AskDeps,
): Promise<readonly boolean[]> {
  const asked = { check: rule.keep, context: route.context }
  const valuesOf = (item: string): CheckValues =>
    requestValues({ request, parameters, keepQuery: route.query, claims, body: null, item })
  const inOne = Math.max(1, Math.floor(CHECKS_MAX / leavesOf(rule.keep)))
  const built: Questions[] = []
  const ask = ({ permissions, entitlements, context }: Questions): Promise<PdpAnswer> =>
    pdp.ask({ ...question, permissions, entitlements, context })
  const asking: Promise<PdpAnswer>[] = []
  for (let at = 0; at < items.length; at += inOne) {
    const questions = buildItemQuestions(asked, items.slice(at, at + inOne).map(valuesOf))
    built.push(questions)
    asking.push(ask(questions))
    // The PDP decides about these items while the next ones are read; a question that fails meanwhile is handled below.
    asking.at(-1)?.catch(() => undefined)
    if (built.length % IN_TURN === 0) await setImmediate()
  }
  for (let round = 0; ; round += 1) {
    const answers = await Promise.all(round === 0 ? asking : built.map(ask))
    if (answers.some(({ active }) => !active))
      throw new FilterError('the token is not active any more', 'token_invalid')
    const [first] = answers
    if (first === undefined) return []
    if (answers.every(({ revision }) => revision === first.revision))
      return built.flatMap(({ parts }, at) => parts.map((part) => isKept(part(answers[at] ?? first))))
    if (round === ROUNDS_MAX - 1) throw new PdpUnavailable('the relationships changed again while a list was read')
  }
}

/** After this many questions, other requests get a turn. */
const IN_TURN = 8
const ROUNDS_MAX = 2

/** An item about which the PDP cannot decide is hidden. Throws PdpUnavailable if the PDP is not available at all. */
function isKept(denial: CheckDenial | null): boolean {
  if (denial?.code === 'pdp_unavailable') throw new PdpUnavailable(`the PDP could not decide ${denialText(denial)}`)
  return denial === null
}

/** True for each check that holds for the sender now. Rejects with PdpUnavailable, and with RequestError for too many values. */
export async function holding(
  { claims, request, parameters, route, question }: Asked,
  checks: readonly Check[],
  { pdp }: AskDeps,
): Promise<readonly boolean[]> {
  const values = requestValues({ request, parameters, keepQuery: route.query, claims, body: null })
  const held: boolean[] = []
  let at = 0
  while (at < checks.length) {
    const { taken, questions } = fitting(checks.slice(at), (some) =>
      buildQuestions({ check: ANYBODY, context: route.context }, values, some),
    )
    const { permissions, entitlements, context } = questions
    const answer = await pdp.ask({ ...question, permissions, entitlements, context })
    held.push(...questions.parts.map((part) => answer.active && part(answer) === null))
    at += taken
  }
  return held
}

/** A refusal at a route for MCP. */
type Hidable = Asked & {
  readonly mcp: Pick<McpJudged, 'unseen'> | null
  readonly rpc: RpcReply | null
  readonly reason: { readonly code: string }
  readonly questions: Questions
}

/** If the sender may not even see what is refused, the answer is the same as if it did not exist. Rejects with PdpUnavailable. */
export async function hideUnseen<R extends Hidable>(refused: R, answer: PdpAnswer, deps: AskDeps): Promise<R> {
  const { mcp, rpc, reason, questions, route } = refused
  const isPlain = rpc !== null && rpc.code === null && reason.code === 'permission_denied' && !route.shadow
  const unseen = isPlain && mcp !== null ? mcp.unseen(answer, questions.parts) : null
  if (unseen === null) return refused
  const [isSeen] = await holding(refused, [unseen.check], deps)
  return isSeen === true ? refused : { ...refused, rpc: unseen.reply }
}

/** The first checks whose questions fit into one request to the PDP, but at least one check. */
function fitting(
  checks: readonly Check[],
  build: (some: readonly Check[]) => Questions,
): { readonly taken: number; readonly questions: Questions } {
  for (let taken = Math.min(checks.length, CHECKS_MAX); ; taken = Math.ceil(taken / 2)) {
    const questions = build(checks.slice(0, taken))
    if (taken === 1 || Math.max(questions.permissions.length, questions.entitlements.length) <= CHECKS_MAX)
      return { taken, questions }
  }
}
