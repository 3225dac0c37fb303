/** Edits the answer of a service before the client gets it: a JSON document as a whole, an event stream event by event. */
import type { Dispatcher } from 'undici'
import { mediaTypeOf } from '../../pdp/shared/base/media-type.ts'
import { type AnswerFilter, FilterError } from '../http/edited-answer.ts'
import { firstValue } from '../http/fields.ts'
import { rawFields } from './response-fields.ts'

/** Counts the bytes of all answers that are held. */
export class HeldAnswers {
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax = HELD_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  /** False: there is no place for them. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false
    this.#bytes += bytes
    return true
  }

  free(bytes: number): void {
    this.#bytes -= bytes
  }
}

const HELD_BYTES_MAX = 64 * 1024 * 1024
const SUCCESS = { first: 200, last: 299 }
const NO_CONTENT = 204
/** They describe the bytes of the service. */
const OF_BYTES = [
  'content-length',
  'etag',
  'digest',
  'content-digest',
  'repr-digest',
  'content-md5',
  'cache-control',
  'accept-ranges',
]

type Control = Dispatcher.DispatchController
/** The part of a handler of undici that answers a client. */
type Relay = {
  onRequestStart(controller: Control): void
  onResponseStart(controller: Control, status: number): void
  onResponseData(controller: Control, chunk: Buffer): void
  onResponseEnd(controller: Control): void
  onResponseError(controller: Control, err: Error): void
}

/** Stands before the handler that answers the client, which sees nothing of a body until it was edited. */
export class FilteredAnswer implements Relay {
  readonly #next: Relay
  readonly #filter: AnswerFilter
  readonly #held: HeldAnswers
  #mode: 'pass' | 'empty' | 'document' | 'events' = 'pass'
  #status = 0
  #parts: Buffer[] = []
  #bytes = 0
  #over = false
  /** The edits of earlier events are under way. */
  #editing: Promise<void> | null = null

  constructor(next: Relay, filter: AnswerFilter, held: HeldAnswers) {
    this.#next = next
    this.#filter = filter
    this.#held = held
  }

  onRequestStart(controller: Control): void {
    this.#next.onRequestStart(controller)
  }

  onResponseStart(controller: Control, status: number): void {
    // An error has no items.
    const isSuccess = status >= SUCCESS.first && status <= SUCCESS.last && status !== NO_CONTENT
    if (!isSuccess) return void this.#next.onResponseStart(controller, status)
    const fields = rawFields(controller.rawHeaders)
    const coding = firstValue(fields, 'content-encoding') ?? 'identity'
    if (coding.toLowerCase() !== 'identity') return void this.#fail(controller, `the answer has the coding ${coding}`)
    const type = mediaTypeOf(firstValue(fields, 'content-type') ?? '')
    controller.rawHeaders = editedFields(fields)
    if (type === 'text/event-stream') {
      this.#mode = 'events'
      return void this.#next.onResponseStart(controller, status)
    }
    // As for a notification, which is accepted without a word.
    if (type === '') {
      this.#mode = 'empty'
      return void this.#next.onResponseStart(controller, status)
    }
    if (type !== 'application/json') return void this.#fail(controller, `the answer has the media type ${type}`)
    this.#mode = 'document'
    this.#status = status
  }

  onResponseData(controller: Control, chunk: Buffer): void {
    if (this.#over) return
    if (this.#mode === 'pass') return void this.#next.onResponseData(controller, chunk)
    if (this.#mode === 'empty') return void this.#fail(controller, 'the answer has no media type')
    if (this.#bytes + chunk.length > this.#filter.bytesMax)
      return void this.#fail(controller, 'the answer is too large')
    if (!this.#held.take(chunk.length)) return void this.#fail(controller, 'too many answers are held')
    this.#bytes += chunk.length
    this.#parts.push(chunk)
    if (this.#mode === 'events' && (chunk.includes(LF) || chunk.includes(CR))) this.#sendEvents(controller)
  }

  onResponseEnd(controller: Control): void {
    if (this.#over) return
    if (this.#mode === 'pass' || this.#mode === 'empty') return void this.#next.onResponseEnd(controller)
    if (this.#mode === 'events') return void this.#endEvents(controller)
    const editing = this.#edit(this.#taken())
    if (typeof editing === 'string') this.#sendDocument(controller, editing)
    else
      editing.then(
        (text) => void this.#sendDocument(controller, text),
        (err: unknown) => this.#failWith(controller, err),
      )
  }

  /** The rest is no whole event, which clients would drop. */
  #endEvents(controller: Control): void {
    if (this.#over) return
    if (this.#editing !== null) return void this.#editing.then(() => this.#endEvents(controller))
    this.#release()
    this.#next.onResponseEnd(controller)
  }

  onResponseError(controller: Control, err: Error): void {
    if (this.#over) return
    this.#release()
    this.#over = true
    this.#next.onResponseError(controller, err)
  }

  #edit(bytes: Buffer): string | Promise<string> {
    try {
      return this.#filter.edit(UTF8.decode(bytes))
    } catch (err) {
      return Promise.reject(err)
    }
  }

  #sendDocument(controller: Control, text: string): void {
    if (this.#over) return
    this.#release()
    const body = Buffer.from(text)
    controller.rawHeaders = [...rawFields(controller.rawHeaders), 'content-length', String(body.length)]
    this.#next.onResponseStart(controller, this.#status)
    if (body.length > 0) this.#next.onResponseData(controller, body)
    this.#next.onResponseEnd(controller)
  }

  /** Sends the events that are complete, one after the other. */
  #sendEvents(controller: Control): void {
    if (this.#editing !== null) return
    for (;;) {
      const event = this.#nextEvent()
      if (event === null) return
      const edited = this.#editEvent(event)
      if (typeof edited === 'string') {
        this.#next.onResponseData(controller, Buffer.from(edited))
        if (this.#over) return
        continue
      }
      controller.pause()
      this.#editing = edited.then(
        (text) => {
          this.#editing = null
          if (this.#over) return
          controller.resume()
          this.#next.onResponseData(controller, Buffer.from(text))
          this.#sendEvents(controller)
        },
        (err: unknown) => this.#failWith(controller, err),
      )
      return
    }
  }

  /** The bytes of one event with the blank line after it; null: none is complete. */
  #nextEvent(): Buffer | null {
    const bytes = this.#taken()
    const end = endOfEvent(bytes)
    this.#parts = end === null ? [bytes] : [bytes.subarray(end)]
    if (end === null) return null
    this.#bytes -= end
    this.#held.free(end)
    return bytes.subarray(0, end)
  }

  #taken(): Buffer {
    const [first = EMPTY] = this.#parts
    const whole = this.#parts.length === 1 ? first : Buffer.concat(this.#parts)
    this.#parts = [whole]
    return whole
  }

  #editEvent(event: Buffer): string | Promise<string> {
    let text: string
    try {
      text = UTF8.decode(event)
    } catch (err) {
      return Promise.reject(err)
    }
    const lines = text.split(/\r\n|\r|\n/)
    const data = lines.filter((line) => /^data(?::|$)/.test(line)).map((line) => line.replace(/^data:? ?/, ''))
    if (/^[ \t\n]*$/.test(data.join('\n'))) return text
    const rest = lines.filter((line) => line !== '' && !/^data(?::|$)/.test(line))
    const rebuild = (edited: string): string =>
      `${[...rest, ...edited.split('\n').map((line) => `data: ${line}`)].join('\n')}\n\n`
    const whole = data.join('\n')
    const editing = this.#edit(Buffer.from(whole))
    const write = (edited: string): string => (edited === whole ? text : rebuild(edited))
    return typeof editing === 'string' ? write(editing) : editing.then(write)
  }

  #release(): void {
    this.#held.free(this.#bytes)
    this.#bytes = 0
    this.#parts = []
  }

  #fail(controller: Control, reason: string): void {
    this.#failWith(controller, new FilterError(reason))
  }

  #failWith(controller: Control, err: unknown): void {
    if (this.#over) return
    this.#release()
    this.#over = true
    const cause = err instanceof Error ? err : new Error(String(err))
    controller.abort(cause)
    this.#next.onResponseError(controller, cause)
  }
}

const EMPTY = Buffer.alloc(0)
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Without what describes other bytes; no cache may give the answer to others. */
const editedFields = (fields: readonly string[]): string[] => [
  ...fields.filter((_, at) => !OF_BYTES.includes(fields[at & ~1]?.toLowerCase() ?? '')),
  'cache-control',
  'private, no-store',
]

const LF = 0x0a
const CR = 0x0d

/** The place after the blank line that ends the first event; null: there is none yet. */
function endOfEvent(bytes: Buffer): number | null {
  const lineEnd = (at: number): number => {
    if (bytes[at] === LF) return at + 1
    if (bytes[at] !== CR) return at
    return bytes[at + 1] === LF ? at + 2 : at + 1
  }
  for (let at = 0; at < bytes.length; at += 1) {
    const next = lineEnd(at)
    if (next === at) continue
    const after = lineEnd(next)
    // A CR at the end may have its LF in the next piece.
    if (after > next && (after < bytes.length || bytes[after - 1] !== CR)) return after
    at = next - 1
  }
  return null
}
