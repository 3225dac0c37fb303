/** A `DecideStream`: many questions over one connection, with answers in any order, and repeated answers to watched questions. */
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { tenantOf } from '../../../shared/domain/names.ts'
import { tenantGroup } from '../authentication/grpc-callers.ts'
import { type AnswerQuestion, guestOf } from '../decisions/answer.ts'
import type { WatchedQuestions } from '../decisions/watched-questions.ts'
import { RequestProblem, type RequestProblemCode } from '../http/status.ts'
import type { AnswerOrError } from './answer-codec.ts'
import { createOutbox, type Outbox, type StreamCall } from './answer-sender.ts'
import { type Holding, hold } from './budgets.ts'
import { readStreamQuestion } from './question-codec.ts'
import type { StreamQuestion, StreamRequest } from './questions.ts'
import { createHandles } from './token-handles.ts'
import { questionWeight } from './weights.ts'

const QUESTIONS_PER_MESSAGE_MAX = 8_192
const WATCHED_MAX = 4_096

export type StreamDeps = {
  readonly recognize: (token: string) => Promise<TokenState>
  readonly answer: AnswerQuestion
  readonly watched: WatchedQuestions
  /**
   * The group of the GrpcCaller; null: the operator's, which may ask about guests in every organization. Others may ask in their
   * tenant's only.
   */
  readonly group: string | null
  /** The part of the limits that the caller's streams hold. */
  readonly holding: Holding
  /** The code that the caller sees. Logs errors that are our fault. */
  readonly problemCode: (err: unknown) => string
}
export type OpenStream = {
  /** Answers the questions already taken, takes no others, and ends the stream. */
  drain(): void
}

export function serveStream(call: StreamCall, deps: StreamDeps): OpenStream {
  const handles = createHandles(deps.holding)
  const outbox = createOutbox(call, deps.holding)
  const watched = createWatchedTable(outbox, deps)
  let draining = false

  function take(question: StreamQuestion, stateOf: (token: string) => Promise<TokenState>): void {
    const { id, handle } = question
    const weight = questionWeight(question)
    if (!outbox.expect(weight)) return void outbox.reply(id, { error: 'overloaded' }, 0)
    const token = question.guest === '' ? handles.find(handle) : guestFor(question, deps.group)
    if (token === undefined) outbox.reply(id, { error: 'handle_unknown' }, weight)
    else if (token === null) outbox.reply(id, { error: 'permission_denied' }, weight)
    else if (question.watched) watch(question, token, weight)
    else void reply(question, typeof token === 'string' ? stateOf(token) : Promise.resolve(token), weight)
  }

  function refuse(id: number, code: RequestProblemCode): void {
    outbox.expect(0)
    outbox.reply(id, { error: code }, 0)
  }

  function watch(question: StreamQuestion, token: string | TokenState, weight: number): void {
    try {
      watched.add(question, token, weight)
    } catch (err) {
      outbox.reply(question.id, { error: deps.problemCode(err) }, weight)
    }
  }

  async function reply(question: StreamQuestion, state: Promise<TokenState>, weight: number): Promise<void> {
    try {
      outbox.reply(question.id, { answer: await deps.answer(await state, readStreamQuestion(question)) }, weight)
    } catch (err) {
      outbox.reply(question.id, { error: deps.problemCode(err) }, weight)
    }
  }

  function drain(): void {
    draining = true
    watched.clear()
    outbox.endWhenAnswered()
  }

  call.on('data', (message: StreamRequest) => {
    // No further message is read, so that the stream can end in order. The caller then asks another PDP.
    if (draining) return
    for (const { handle, token } of message.tokens) handles.define(handle, token)
    // Questions of one message share one read of each token's state, which begins after the message arrived.
    const states = new Map<string, Promise<TokenState>>()
    const stateOf = (token: string): Promise<TokenState> => {
      const state = states.get(token) ?? deps.recognize(token)
      states.set(token, state)
      return state
    }
    for (const id of message.cancel) watched.remove(id)
    for (const question of message.questions.slice(0, QUESTIONS_PER_MESSAGE_MAX)) take(question, stateOf)
    for (const { id } of message.questions.slice(QUESTIONS_PER_MESSAGE_MAX)) refuse(id, 'request_too_large')
  })
  call.on('end', drain)
  // Frees all that the stream holds when it ends or its caller leaves.
  for (const event of ['cancelled', 'close', 'error', 'finish']) {
    call.on(event, () => {
      watched.clear()
      handles.clear()
      outbox.clear()
    })
  }
  return { drain }
}

/** The state of a guest; null: the caller may not ask this. A guest has no token, so only permissions are answered. */
function guestFor({ guest, handle, entitlements }: StreamQuestion, group: string | null): TokenState | null {
  const asksPermissionsOnly = handle === 0 && entitlements.length === 0
  return asksPermissionsOnly && (group === null || group === tenantGroup(tenantOf(guest))) ? guestOf(guest) : null
}

/** The watched questions of one stream, by the ids that the caller chose. */
function createWatchedTable(outbox: Outbox, deps: Pick<StreamDeps, 'watched' | 'holding' | 'problemCode'>) {
  const cancels = new Map<number, () => void>()

  function remove(id: number): void {
    cancels.get(id)?.()
    cancels.delete(id)
  }

  return {
    remove,
    clear: () => {
      for (const id of [...cancels.keys()]) remove(id)
    },
    /** Adds a watched question, and replaces one with the same id. Throws RequestProblem `watched_limit`. */
    add({ id, ...question }: StreamQuestion, token: string | TokenState, weight: number): void {
      remove(id)
      if (cancels.size >= WATCHED_MAX)
        throw new RequestProblem('watched_limit', 'too many watched questions on this stream')
      const place = hold(deps.holding, 'watched', 1)
      if (place === null) throw new RequestProblem('watched_limit', 'too many watched questions of this caller')
      // A watched question counts twice until its first answer, and then once until it ends.
      const memory = hold(deps.holding, 'bytes', weight)
      const giveBack = (): void => {
        place()
        memory?.()
      }
      if (memory === null) {
        giveBack()
        throw new RequestProblem('watched_limit', 'the watched questions of this caller take too much memory')
      }
      let answered = false
      const say = (outcome: AnswerOrError): boolean => {
        const isFirst = !answered
        answered = true
        return isFirst ? outbox.reply(id, outcome, weight) : outbox.update(id, outcome)
      }
      let cancel: () => void
      try {
        cancel = deps.watched.ask({
          token,
          question: readStreamQuestion(question),
          onAnswer: (answer) => say({ answer }),
          onError: (err) => void say({ error: deps.problemCode(err) }),
        })
      } catch (err) {
        giveBack()
        throw err
      }
      cancels.set(id, () => {
        cancel()
        giveBack()
        outbox.cancelUpdate(id)
        if (!answered) outbox.forget(weight)
        answered = true
      })
    },
  }
}
