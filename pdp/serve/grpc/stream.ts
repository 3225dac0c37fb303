/** One `DecideStream`: many questions over one connection, answered in any order, and again where they stand. */
import type { TokenState } from '../../identity/tokens/token-state.ts'
import type { AnswerQuestion } from '../decisions/answer.ts'
import type { WatchedQuestion, WatchedQuestions } from '../decisions/standing-questions.ts'
import { RequestProblem } from '../problems/status.ts'
import type { Outcome } from './answer-codec.ts'
import type { Holding } from './budgets.ts'
import { createOutbox, type Outbox, type StreamCall } from './outbox.ts'
import { readStreamQuestion } from './question-codec.ts'
import type { StreamQuestion, StreamRequest } from './questions.ts'
import { createHandles } from './token-handles.ts'

const QUESTIONS_PER_MESSAGE_MAX = 8_192
const STANDING_MAX = 4_096

export type StreamDeps = {
  readonly recognize: (token: string) => Promise<TokenState>
  readonly answer: AnswerQuestion
  readonly standing: WatchedQuestions
  /** Of the caller's. */
  readonly holding: Holding
  /** The code that the caller sees; logs what is our fault. */
  readonly refusalCode: (err: unknown) => string
}
export type OpenStream = {
  /** Answers what was asked, takes no more, and ends the stream. */
  drain(): void
}

export function serveStream(call: StreamCall, deps: StreamDeps): OpenStream {
  const handles = createHandles(deps.holding)
  const outbox = createOutbox(call)
  const standing = createWatchedTable(outbox, deps)

  function take(question: StreamQuestion, stateOf: (token: string) => Promise<TokenState>): void {
    const { id, handle } = question
    const token = handles.find(handle)
    if (token === undefined) outbox.reply(id, { error: 'handle_unknown' })
    else if (question.standing) stand(question, token)
    else void reply(question, stateOf(token))
  }

  function stand(question: StreamQuestion, token: string): void {
    try {
      standing.add(question, token)
    } catch (err) {
      outbox.reply(question.id, { error: deps.refusalCode(err) })
    }
  }

  async function reply(question: StreamQuestion, state: Promise<TokenState>): Promise<void> {
    try {
      outbox.reply(question.id, { answer: await deps.answer(await state, readStreamQuestion(question)) })
    } catch (err) {
      outbox.reply(question.id, { error: deps.refusalCode(err) })
    }
  }

  function drain(): void {
    standing.clear()
    outbox.endWhenAnswered()
  }

  call.on('data', (message: StreamRequest) => {
    for (const { handle, token } of message.tokens) handles.define(handle, token)
    // Questions of one message share one look at each token's state, made after the message arrived.
    const states = new Map<string, Promise<TokenState>>()
    const stateOf = (token: string): Promise<TokenState> => {
      const state = states.get(token) ?? deps.recognize(token)
      states.set(token, state)
      return state
    }
    for (const id of message.cancel) standing.remove(id)
    outbox.expect(message.questions.length)
    for (const question of message.questions.slice(0, QUESTIONS_PER_MESSAGE_MAX)) take(question, stateOf)
    for (const { id } of message.questions.slice(QUESTIONS_PER_MESSAGE_MAX)) {
      outbox.reply(id, { error: 'request_too_large' })
    }
  })
  call.on('end', drain)
  // The caller is gone.
  for (const event of ['cancelled', 'close', 'error']) {
    call.on(event, () => {
      standing.clear()
      handles.clear()
    })
  }
  return { drain }
}

/** The standing questions of one stream, by the ids that its caller chose. */
function createWatchedTable(outbox: Outbox, deps: Pick<StreamDeps, 'standing' | 'holding' | 'refusalCode'>) {
  const endings = new Map<number, () => void>()

  function remove(id: number): void {
    endings.get(id)?.()
    endings.delete(id)
  }

  function askOrGiveBack(asked: WatchedQuestion): () => void {
    try {
      return deps.standing.ask(asked)
    } catch (err) {
      deps.holding.give('standing', 1)
      throw err
    }
  }

  return {
    remove,
    clear: () => {
      for (const id of [...endings.keys()]) remove(id)
    },
    /** One of an id that stands already takes its place. Throws Refusal `standing_limit`. */
    add({ id, ...question }: StreamQuestion, token: string): void {
      remove(id)
      if (endings.size >= STANDING_MAX)
        throw new RequestProblem('standing_limit', 'too many standing questions on this stream')
      if (!deps.holding.take('standing', 1))
        throw new RequestProblem('standing_limit', 'too many standing questions of this caller')
      let answered = false
      const say = (outcome: Outcome): void => {
        if (answered) outbox.update(id, outcome)
        else outbox.reply(id, outcome)
        answered = true
      }
      const cancel = askOrGiveBack({
        token,
        question: readStreamQuestion(question),
        onAnswer: (answer) => say({ answer }),
        onError: (err) => say({ error: deps.refusalCode(err) }),
      })
      endings.set(id, () => {
        cancel()
        deps.holding.give('standing', 1)
        outbox.cancelUpdate(id)
        if (!answered) outbox.forget()
        answered = true
      })
    },
  }
}
