/** What is on its way to the caller of a stream: all answers of a tick in one message, and no more than the caller reads. */
import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { Outcome, StreamAnswer } from './answer-codec.ts'
import type { StreamRequest } from './questions.ts'

// Above this the stream is not read until answers have left: the caller feels it as flow control.
const OPEN_QUESTIONS_MAX = 2_048

/** What is written becomes one message. */
export type StreamCall = ServerDuplexStream<StreamRequest, readonly StreamAnswer[]>
export type Outbox = {
  /** So many more questions wait for a `reply`. */
  expect(count: number): void
  reply(id: number, outcome: Outcome): void
  /** A question that waits no longer. */
  forget(): void
  /** A newer answer to a watched question. A caller that reads slowly misses those that were over before it looked. */
  update(id: number, outcome: Outcome): void
  /** What `update` said and did not send yet is of no interest any more. */
  cancelUpdate(id: number): void
  /** Ends the stream when everything that was asked is answered. */
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
    // An immediate would be late by a turn of the event loop, since HTTP/2 writes in one of its own.
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
