/** Sends answers to the caller of a stream: all answers of a tick in one message, and no faster than the caller reads. */
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { Outcome, StreamAnswer } from './answer-codec.ts'
import type { StreamRequest } from './questions.ts'

// Above this number the stream is not read until answers have been sent: flow control then slows the caller.
const OPEN_QUESTIONS_MAX = 2_048

/** Each write becomes one message. */
export type StreamCall = ServerDuplexStream<StreamRequest, readonly StreamAnswer[]>
export type Outbox = {
  /** This many more questions wait for a `reply`. */
  expect(count: number): void
  reply(id: number, outcome: Outcome): void
  /** A question was cancelled before its `reply`. */
  forget(): void
  /** A newer answer to a watched question. A caller that reads slowly gets only the latest one. */
  update(id: number, outcome: Outcome): void
  /** Drops an update that was not sent yet. */
  cancelUpdate(id: number): void
  /** Ends the stream when every question is answered. */
  endWhenAnswered(): void
}

export function createOutbox(call: StreamCall): Outbox {
  let ready: StreamAnswer[] = []
  const updates = new Map<number, Outcome>()
  let openCount = 0
  let ending = false
  let flushing = false

  function flush(): void {
    flushing = false
    if (call.writableNeedDrain) return // goes on at 'drain'
    const answers = ready
    openCount -= ready.length
    ready = []
    for (const [id, outcome] of updates) answers.push({ id, outcome })
    updates.clear()
    if (answers.length > 0 && call.writable) call.write(answers)
    if (ending && openCount === 0) call.end()
    else if (openCount < OPEN_QUESTIONS_MAX) call.resume()
  }

  function flushSoon(): void {
    if (flushing) return
    flushing = true
    // Not setImmediate: HTTP/2 writes in an immediate of its own, so the answer would be one turn of the event loop late.
    process.nextTick(flush)
  }

  call.on('drain', flushSoon)
  return {
    expect(count) {
      openCount += count
      if (openCount >= OPEN_QUESTIONS_MAX) call.pause()
    },
    reply(id, outcome) {
      ready.push({ id, outcome })
      flushSoon()
    },
    forget() {
      openCount -= 1
      flushSoon()
    },
    update(id, outcome) {
      updates.set(id, outcome)
      flushSoon()
    },
    cancelUpdate: (id) => void updates.delete(id),
    endWhenAnswered() {
      ending = true
      flushSoon()
    },
  }
}
