/** Decides what must hold for one request to an MCP server, and what its answer may show. */
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
  /** As the service gets it. */
  readonly request: InboundRequest
  /** The id of the message, as it is written; null: nobody waits for an answer with an id. */
  readonly id: string | null
  /** A session id of the service, as the client gets it. */
  readonly seal: (session: string) => string
  /** Null: the answer passes as it is. */
  readonly filter: AnswerFilter | null
}
/** The demands of one request. */
export type McpJudged = {
  readonly id: string | null
  readonly check: Check
  readonly stepUp: StepUp | null
  /** Further checks: of each item of a list, or of whether a tool may be seen. */
  readonly parts: readonly Check[]
  /** How a denial is answered, by what the parts say. */
  readonly reply: (answer: PdpAnswer, parts: readonly Evaluate[]) => RpcReply
  /** The reply to a denial where this check does not hold, either, which is asked only then; null: always `reply`. */
  readonly unseen: (answer: PdpAnswer, parts: readonly Evaluate[]) => { check: Check; reply: RpcReply } | null
  readonly passage: (answer: PdpAnswer, parts: readonly Evaluate[], holding: AskHolding) => McpPassage
}
/** Tells of each check whether it holds for the sender. Rejects with PdpUnavailable. */
export type AskHolding = (checks: readonly Check[]) => Promise<readonly boolean[]>

export type McpRequest = {
  readonly request: InboundRequest
  readonly rules: McpRules
  /** The check of the route, which comes before everything. */
  readonly base: Check
  readonly owner: SessionOwner
  /** Null: sessions pass as they are. */
  readonly sessions: SessionSeal | null
  /** Null: the method has no message. */
  readonly body: Buffer | null
}

/** Throws RpcError for what is not of the protocol. */
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

/** A client learns no difference between a thing that it may not see and one that is not there. */
const hiddenReply = ({ id, does, name }: McpMessage): RpcReply => ({
  id,
  code: RPC.params,
  status: id === null ? 400 : 200,
  message: `Unknown ${does.rule === 'tool' || does.rule === 'prompt' ? does.rule : 'resource'}: ${name ?? ''}`,
})

/** Null: the request is of no session. Throws RpcError for the session of somebody else. */
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

/** Null: the file does not name it. Throws RpcError. */
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
  // Values of an argument or a parameter that its check reads are, to each reader, those of others too.
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
  // More than one question takes.
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
