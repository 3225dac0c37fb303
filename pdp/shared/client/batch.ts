/** Sends all questions of one pass of the event loop as one message, and replaces tokens that the PDP already has by handles. */
import type { Questions, StreamedQuestion } from './codec.ts'

/** The most handles of one stream. */
const HANDLES_MAX = 1_000
/** Far below the 4 MiB that gRPC servers accept, even with large tokens. */
const MESSAGE_BYTES_MAX = 256 * 1024
const QUESTION_BYTES = 64
const CHECK_BYTES = 128

export function createQuestionBatch(write: (message: Questions) => void) {
  let handles = createHandles()
  let tokens: Questions['tokens'][number][] = []
  let questions: Questions['questions'][number][] = []
  let cancelled: number[] = []
  let bytes = 0
  let scheduled = false

  function empty(): void {
    tokens = []
    questions = []
    cancelled = []
    bytes = 0
  }

  function flush(): void {
    if (questions.length === 0 && cancelled.length === 0) return
    const message = { tokens, questions, cancel: cancelled }
    empty()
    write(message)
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
    })
  }

  return {
    /** Adds a question to the message of the present pass. */
    add(id: number, question: StreamedQuestion, watched: boolean): void {
      const { digest, token, permissions, context, guest } = question
      const { handle, isNew } = guest === undefined ? handles.of(digest) : NOBODY
      if (isNew) {
        // The PDP reads a message's tokens before its questions, so a reused handle needs a new message.
        if (questions.some((waiting) => waiting.handle === handle)) flush()
        tokens.push({ handle, token })
      }
      questions.push(messageOf(question, { id, handle, watched }))
      bytes += QUESTION_BYTES + CHECK_BYTES * permissions.length + context.length + (isNew ? token.length : 0)
      if (bytes > MESSAGE_BYTES_MAX) flush()
      else schedule()
    },
    /** Ends the watched question with this id. */
    cancel(id: number): void {
      // The PDP reads a message's cancellations before its questions, so the question would never be cancelled.
      const at = questions.findIndex((waiting) => waiting.id === id)
      if (at >= 0) return void questions.splice(at, 1)
      cancelled.push(id)
      schedule()
    },
    /** Sends the token with this digest again with its next question. */
    forget: (digest: string): void => handles.forget(digest),
    /** Forgets handles and unsent questions, for a new stream. */
    reset(): void {
      handles = createHandles()
      empty()
    },
  }
}

const messageOf = (
  question: StreamedQuestion,
  { id, handle, watched }: Pick<Questions['questions'][number], 'id' | 'handle' | 'watched'>,
): Questions['questions'][number] => ({
  id,
  handle,
  permissions: question.permissions,
  entitlements: question.entitlements,
  context: question.context,
  watched,
  requestId: question.requestId,
  traceparent: question.traceparent ?? '',
  clientAddress: question.clientAddress ?? '',
  route: question.route ?? '',
  guest: question.guest ?? '',
})

/** The handle of a guest's question. No token has handle 0, so an older PDP, which knows no guests, answers with an error. */
const NOBODY = { handle: 0, isNew: false }

/** Gives each token a number as its handle; when all are in use, the oldest one is given again. */
function createHandles() {
  const byDigest = new Map<string, number>()
  const digests: (string | undefined)[] = []
  let last = 0
  return {
    of(digest: string): { handle: number; isNew: boolean } {
      const known = byDigest.get(digest)
      if (known !== undefined) return { handle: known, isNew: false }
      last = (last % HANDLES_MAX) + 1
      const evicted = digests[last]
      if (evicted !== undefined && byDigest.get(evicted) === last) byDigest.delete(evicted)
      digests[last] = digest
      byDigest.set(digest, last)
      return { handle: last, isNew: true }
    },
    forget: (digest: string): void => void byDigest.delete(digest),
  }
}
