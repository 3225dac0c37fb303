/** Decides which checks one request to an MCP server needs, and what its answer may show. */
import { isDeepStrictEqual } from 'node:util'
import type { AnswerFilter } from '../http/edited-answer.ts'
import { CHECKS_MAX, type PdpAnswer } from '../pdp-client/question.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { type Check, type Evaluate, leavesOf, NOBODY } from '../routes/checks.ts'
import { ANYBODY, type McpRule, type McpRules, resourceRule } from '../routes/mcp-rules.ts'
import type { StepUp } from '../routes/step-up.ts'
import { listenedUris, namedRevision, namedSession, refuseDisagreement, serviceRequest } from './fields.ts'
import { listFilter } from './lists.ts'
import { type McpMessage, readMessage, stringOf } from './message.ts'
import { STATELESS_REVISIONS } from './methods.ts'
import { RPC, RpcError, type RpcReply } from './rpc-error.ts'
import type { SessionOwner, SessionSeal } from './sessions.ts'

/** A permitted request to an MCP server. */
export type McpPassage = {
  /** The request in the form for the service. */
  readonly request: InboundRequest
  /** The id of the message, as JSON text; null: no answer with an id is expected. */
  readonly id: string | null
  /** Makes the client's session id out of the service's. */
  readonly seal: (session: string) => string
  /** Edits the answer; null: it passes unchanged. */
  readonly filter: AnswerFilter | null
}
/** The checks of one request, and the form of its answer. */
export type McpJudged = {
  readonly id: string | null
  readonly check: Check
  readonly stepUp: StepUp | null
  /** Further checks: one for each item of a list, or whether the client may see a tool. */
  readonly parts: readonly Check[]
  /** The form of a denial, by the results of `parts`. */
  readonly reply: (answer: PdpAnswer, parts: readonly Evaluate[]) => RpcReply
  /** A check to ask after a denial, and the reply if it fails, too: the client may not even see the thing. Null: always `reply`. */
  readonly unseen: (answer: PdpAnswer, parts: readonly Evaluate[]) => { check: Check; reply: RpcReply } | null
  readonly passage: (answer: PdpAnswer, parts: readonly Evaluate[], holding: AskHolding) => McpPassage
}
/** True for each check that holds for the sender. Rejects with PdpUnavailable. */
export type AskHolding = (checks: readonly Check[]) => Promise<readonly boolean[]>

export type McpRequest = {
  readonly request: InboundRequest
  readonly rules: McpRules
  /** The check of the route, which must hold for every request. */
  readonly base: Check
  readonly owner: SessionOwner
  /** Seals session ids; null: the ids pass unchanged. */
  readonly sessions: SessionSeal | null
  /** The message; null: the HTTP method has none. */
  readonly body: Buffer | null
}

/** Throws RpcError for a message that the protocol does not allow. */
export function demandsOfMcp({ request, rules, base, owner, sessions, body }: McpRequest): McpJudged {
  const named = namedRevision(request)
  const session = openSession(request, { owner, sessions })
  const message = body === null ? null : readMessage(body, named)
  if (message !== null) refuseDisagreement(request, message)
  const isStateless = message?.isStateless ?? STATELESS_REVISIONS.includes(named ?? '')
  const sent = serviceRequest(request, { isStateless, session })
  const seal = (given: string): string => sessions?.seal(given, owner) ?? given
  const id = message?.id ?? null
  const open = { id, stepUp: null, check: base, parts: [], reply: () => plainReply(id), unseen: () => null }
  const passed = { request: sent, id, seal, filter: null }
  if (message === null || message.does.rule === 'open') return { ...open, passage: () => passed }
  if (message.does.list !== undefined) return { ...open, ...judgeList({ message, rules, base, passed }) }
  const rule = ruleOf(message, rules)
  return {
    id,
    check: { kind: 'all', of: [base, rule?.check ?? NOBODY] },
    stepUp: rule?.stepUp ?? null,
    parts: [base, rule?.listed ?? NOBODY],
    reply(answer, [mayUse, maySee]) {
      const isHidden = mayUse?.(answer) === null && maySee?.(answer)?.code === 'permission_denied'
      return isHidden ? hiddenReply(message) : plainReply(id)
    },
    unseen(answer, [mayUse]) {
      const some = rule?.some ?? null
      return some === null || mayUse?.(answer) !== null ? null : { check: some, reply: hiddenReply(message) }
    },
    passage: () => passed,
  }
}

const plainReply = (id: string | null): RpcReply => ({ id, code: null, status: null })

/** The same reply for a thing that the client may not see and for one that does not exist. */
const hiddenReply = ({ id, does, name }: McpMessage): RpcReply => ({
  id,
  code: RPC.params,
  status: id === null ? 400 : 200,
  message: `Unknown ${does.rule === 'tool' || does.rule === 'prompt' ? does.rule : 'resource'}: ${name ?? ''}`,
})

/** The service's session id in the request; null: no id. Throws RpcError for another subject's session. */
function openSession(
  request: InboundRequest,
  { owner, sessions }: Pick<McpRequest, 'owner' | 'sessions'>,
): string | null {
  const given = namedSession(request)
  if (given === null || sessions === null) return given
  const session = sessions.open(given, owner)
  if (session !== null) return session
  const message = 'Session not found'
  throw new RpcError('request_invalid', message, { id: null, code: RPC.request, status: 404, message })
}

/** The rule for the tool, prompt or resource that the message names; null: there is no rule. Throws RpcError. */
function ruleOf(message: McpMessage, rules: McpRules): McpRule | null {
  const name = message.name ?? ''
  switch (message.does.rule) {
    case 'tool':
      return own(rules.tools, name)
    case 'prompt':
      return own(rules.prompts, name)
    case 'resource':
      return resourceRule(rules, name)
    case 'completion':
      return referenceRule(message, rules)
    case 'resources': {
      const found = listenedUris(message).map((uri) => resourceRule(rules, uri)?.check ?? NOBODY)
      const check: Check = { kind: 'all', of: [ANYBODY, ...found] }
      return { check, listed: check, some: null, stepUp: null }
    }
    default:
      return null
  }
}

function referenceRule({ text }: McpMessage, rules: McpRules): McpRule | null {
  const type = stringOf(text, ['params', 'ref', 'type'])
  if (type !== 'ref/prompt' && type !== 'ref/resource') return null
  const name = stringOf(text, ['params', 'ref', type === 'ref/prompt' ? 'name' : 'uri']) ?? ''
  const rule =
    type === 'ref/prompt' ? own(rules.prompts, name) : rules.resources.find(({ template }) => template === name)
  // If the check reads an argument or a parameter, completions would show values of other subjects, too.
  return rule != null && isDeepStrictEqual(rule.check, rule.listed) ? rule : null
}

const own = (rules: McpRules['tools'], name: string): McpRule | null =>
  Object.hasOwn(rules, name) ? (rules[name] ?? null) : null

type ListRequest = Pick<McpRequest, 'rules' | 'base'> & { readonly message: McpMessage; readonly passed: McpPassage }

function judgeList({ message, rules, base, passed }: ListRequest): Pick<McpJudged, 'parts' | 'passage'> {
  const { list } = message.does
  if (list === undefined) throw new TypeError('the method lists nothing')
  const { isStateless } = message
  const passing = (keep: Parameters<typeof listFilter>[0]['keep']): McpPassage => ({
    ...passed,
    filter: listFilter({ list, isStateless, keep }),
  })
  const askedLater = (checkOf: (name: string) => Check): ReturnType<typeof judgeList> => ({
    parts: [],
    passage: (_answer, _parts, holding) =>
      passing(async (names) => {
        const different = [...new Set(names)]
        const held = await holding(different.map(checkOf))
        const shown = new Set(different.filter((_, at) => held[at] === true))
        return names.map((name) => shown.has(name))
      }),
  })
  if (list.of === 'resources')
    return askedLater((uri) => ({ kind: 'all', of: [base, resourceRule(rules, uri)?.check ?? NOBODY] }))
  const known = list.of === 'templates' ? rules.resources.map(templateOf) : Object.entries(rules[list.of])
  const parts = known.map(([, { listed, some }]) => some ?? listed)
  // One question to the PDP has room for fewer checks than there are.
  if (parts.reduce((sum, part) => sum + leavesOf(part), leavesOf(base)) > CHECKS_MAX) {
    const checks = new Map(known.map(([name], at) => [name, parts[at] ?? NOBODY]))
    return askedLater((name) => checks.get(name) ?? NOBODY)
  }
  return {
    parts,
    passage(answer, holds) {
      const shown = new Set(known.flatMap(([name], at) => (holds[at]?.(answer) === null ? [name] : [])))
      return passing((names) => names.map((name) => shown.has(name)))
    },
  }
}

const templateOf = (resource: McpRules['resources'][number]): [string, McpRule] => [resource.template, resource]
