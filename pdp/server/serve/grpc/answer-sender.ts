/** Sends answers to the caller of a stream: all answers of a tick together, no faster than the caller reads, within a bound of bytes. */
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { AnswerOrError, StreamAnswer } from './answer-codec.ts'
import type { Holding } from './budgets.ts'
import type { StreamRequest } from './questions.ts'
import { createOutcomeWeight } from './weights.ts'

/** Limits above which the stream is not read until answers are sent: flow control then slows the caller. */
const OPEN_QUESTIONS_MAX = 2_048
const STREAM_BYTES_MAX = 8 * 1024 * 1024
/** The most in one message, unless one answer alone is larger: far below the 4 MiB that gRPC clients accept. */
const MESSAGE_BYTES_MAX = 1024 * 1024

/** A stream on which each write becomes one message. */
export type StreamCall = ServerDuplexStream<StreamRequest, readonly StreamAnswer[]>
export type Outbox = {
  /** Counts one more question, until a `reply` or `forget` with the same weight. False: there is no room; reply with weight 0. */
  expect(weight: number): boolean
  /** Sends an answer; false: there was no room, so `overloaded` was sent instead. */
  reply(id: number, outcome: AnswerOrError, weight: number): boolean
  /** A question was cancelled before its `reply`, so its weight is free again. */
  forget(weight: number): void
  /** A newer answer to a watched question; returns what `reply` returns. A caller that reads slowly gets only the latest. */
  update(id: number, outcome: AnswerOrError): boolean
  /** Drops an update that was not sent yet. */
  cancelUpdate(id: number): void
  /** Ends the stream when every question is answered. */
  endWhenAnswered(): void
  /** The stream is over: drops what was not sent. */
  clear(): void
}
type Weighed = StreamAnswer & { readonly weight: number }

export function createOutbox(call: StreamCall, holding: Pick<Holding, 'take' | 'give'>): Outbox {
  const held = createHeldBytes(holding)
  let ready: Weighed[] = []
  const updates = new Map<number, Weighed>()
  let openCount = 0
  let ending = false
  const flushSoon = onceATick(flush)
  const isFull = (): boolean => openCount >= OPEN_QUESTIONS_MAX || held.bytes() >= STREAM_BYTES_MAX
  const resumeIfRoom = (): void => void (isFull() || call.resume())
  call.on('drain', flushSoon)

  function drain(): readonly Weighed[] {
    const answers = [...ready, ...updates.values()]
    ready = []
    updates.clear()
    return answers
  }
  function flush(): void {
    if (held.isClosed() || call.writableNeedDrain) return // goes on at 'drain'
    openCount -= ready.length
    for (const message of messagesOf(drain())) {
      const sent = held.send(message.weight)
      call.write(message.answers, () => void (sent() && resumeIfRoom()))
    }
    if (ending && openCount === 0) call.end()
    else resumeIfRoom()
  }
  function add(id: number, outcome: AnswerOrError, keep: (answer: Weighed) => void): boolean {
    if (held.isClosed()) return true
    const answer = held.weighed(id, outcome)
    keep(answer)
    flushSoon()
    return answer.outcome === outcome
  }
  function cancelUpdate(id: number): void {
    held.give(updates.get(id)?.weight ?? 0)
    updates.delete(id)
  }

  return {
    expect(weight) {
      openCount += 1
      const taken = held.take(weight)
      if (isFull()) call.pause()
      return taken
    },
    reply(id, outcome, weight) {
      held.give(weight)
      return add(id, outcome, (answer) => ready.push(answer))
    },
    forget(weight) {
      held.give(weight)
      openCount -= 1
      flushSoon()
    },
    update(id, outcome) {
      cancelUpdate(id)
      return add(id, outcome, (answer) => updates.set(id, answer))
    },
    cancelUpdate,
    endWhenAnswered() {
      ending = true
      flushSoon()
    },
    clear() {
      for (const { weight } of drain()) if (!held.isClosed()) held.give(weight)
      held.close()
    },
  }
}

function onceATick(work: () => void): () => void {
  let isPlanned = false
  return () => {
    if (isPlanned) return
    isPlanned = true
    // setImmediate would be one pass of the event loop too late, because HTTP/2 writes in an immediate of its own.
    process.nextTick(() => {
      isPlanned = false
      work()
    })
  }
}

/** Counts the bytes of open questions, and of answers that the transport has not taken. */
function createHeldBytes(holding: Pick<Holding, 'take' | 'give'>) {
  const weightOf = createOutcomeWeight()
  let heldBytes = 0
  let sendingBytes = 0
  let closed = false

  function take(bytes: number): boolean {
    if (!holding.take('bytes', bytes)) return false
    heldBytes += bytes
    return true
  }

  function give(bytes: number): void {
    holding.give('bytes', bytes)
    heldBytes -= bytes
  }

  return {
    bytes: () => heldBytes,
    isClosed: () => closed,
    take,
    give,
    /** An answer without room is replaced by `overloaded`. */
    weighed(id: number, outcome: AnswerOrError): Weighed {
      const weight = weightOf(outcome)
      return take(weight) ? { id, outcome, weight } : { id, outcome: { error: 'overloaded' }, weight: 0 }
    },
    /** Counts bytes. The returned function is called when the transport has taken them; false after `close`, which frees all. */
    send(bytes: number): () => boolean {
      sendingBytes += bytes
      return () => {
        if (closed) return false
        sendingBytes -= bytes
        give(bytes)
        return true
      }
    },
    /** Gives back what the transport has not taken. */
    close(): void {
      if (!closed) give(sendingBytes)
      closed = true
    },
  }
}

function* messagesOf(
  answers: readonly Weighed[],
): Iterable<{ readonly answers: readonly Weighed[]; readonly weight: number }> {
  let from = 0
  let weight = 0
  for (let at = 0; at < answers.length; at += 1) {
    const next = answers[at]?.weight ?? 0
    if (at > from && weight + next > MESSAGE_BYTES_MAX) {
      yield { answers: answers.slice(from, at), weight }
      from = at
      weight = 0
    }
    weight += next
  }
  if (answers.length > from) yield { answers: from === 0 ? answers : answers.slice(from), weight }
}
