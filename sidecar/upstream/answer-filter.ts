/** Edits the answer of a service before the client gets it: a JSON document as a whole, a stream line by line or event by event. */
import type { Dispatcher } from 'undici'
import { mediaTypeOf, namesOtherCharset } from '../../pdp/shared/base/media-type.ts'
import { type AnswerFilter, type AnswerForm, FilterError } from '../http/edited-answer.ts'
import { firstValue, valuesOf } from '../http/fields.ts'
import { DEFAULT_LIMITS } from '../route-file/default-limits.ts'
import { rawFields } from './response-fields.ts'

/** Counts the bytes of all answers that are held in memory to be edited. */
export class HeldAnswers {
  /** The limit of the route file in force. */
  bytesMax: number = DEFAULT_LIMITS.answersHeldBytes
  #bytes = 0
  #edits = 0
  readonly #waiting: (() => void)[] = []

  /** Counts bytes more. False: they would exceed the limit. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.bytesMax) return false
    this.#bytes += bytes
    return true
  }

  free(bytes: number): void {
    this.#bytes -= bytes
  }

  /** Runs a few edits at a time and lets others wait: a document takes many times its size in memory while it is parsed. */
  async inTurn<T>(edit: () => Promise<T>): Promise<T> {
    while (this.#edits >= EDITS_MAX) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#edits += 1
    try {
      return await edit()
    } finally {
      this.#edits -= 1
      this.#waiting.shift()?.()
    }
  }
}

const EDITS_MAX = 2
const SUCCESS = { first: 200, last: 299 }
const NO_CONTENT = 204
const PARTIAL = 206
/** Forms by media type. Types that end in `+json` are documents, too. */
const FORMS: { readonly [type: string]: AnswerForm } = {
  'application/json': 'document',
  'text/event-stream': 'events',
  'application/x-ndjson': 'lines',
  'application/ndjson': 'lines',
  'application/jsonl': 'lines',
  'application/x-jsonlines': 'lines',
  '': 'none',
}
/** Fields that describe the service's bytes, which an edited answer does not have. */
const OF_BYTES = [
  'content-length',
  'etag',
  'digest',
  'content-digest',
  'repr-digest',
  'content-md5',
  'cache-control',
  'accept-ranges',
  'trailer',
  'last-modified',
  'portcullis-removed',
]

type Control = Dispatcher.DispatchController
/** The members of a handler of undici that answer a client. */
type Relay = {
  onRequestStart(controller: Control): void
  onResponseStart(controller: Control, status: number): void
  onResponseData(controller: Control, chunk: Buffer): void
  onResponseEnd(controller: Control): void
  onResponseError(controller: Control, err: Error): void
}
export type Filtering = {
  readonly filter: AnswerFilter
  readonly held: HeldAnswers
  /** Calls `callback` when the client has its whole answer, or has left. */
  readonly whenDone: (callback: () => void) => void
}

export const filtered = (next: Relay, filtering: Filtering): Relay =>
  filtering.filter.shadow ? new ShadowedAnswer(next, filtering) : new FilteredAnswer(next, filtering)

/** Passes an answer on to the handler that writes it to the client, after its body was edited. */
export class FilteredAnswer implements Relay {
  readonly #next: Relay
  readonly #filtering: Filtering
  #form: AnswerForm | 'pass' = 'pass'
  #status = 0
  #parts: Buffer[] = []
  #bytes = 0
  #over = false
  /** Set while earlier pieces of the body are edited. */
  #editing: Promise<void> | null = null

  constructor(next: Relay, filtering: Filtering) {
    this.#next = next
    this.#filtering = filtering
  }

  onRequestStart(controller: Control): void {
    this.#next.onRequestStart(controller)
  }

  onResponseStart(controller: Control, status: number): void {
    // An error answer has no items to filter, so it passes unchanged.
    const isSuccess = status >= SUCCESS.first && status <= SUCCESS.last && status !== NO_CONTENT
    if (!isSuccess) return void this.#next.onResponseStart(controller, status)
    const fields = rawFields(controller.rawHeaders)
    const form = formOf(fields, status)
    if (typeof form === 'object') return void this.#fail(controller, form.refused)
    if (!this.#filtering.filter.forms.includes(form))
      return void this.#fail(controller, `the answer is no ${this.#filtering.filter.forms[0]}`)
    controller.rawHeaders = editedFields(fields)
    this.#form = form
    this.#status = status
    if (form !== 'document') this.#next.onResponseStart(controller, status)
  }

  onResponseData(controller: Control, chunk: Buffer): void {
    if (this.#over) return
    if (this.#form === 'pass') return void this.#next.onResponseData(controller, chunk)
    if (this.#form === 'none') return void this.#fail(controller, 'the answer has no media type')
    const { filter, held } = this.#filtering
    if (this.#bytes + chunk.length > filter.bytesMax) return void this.#fail(controller, 'the answer is too large')
    if (!held.take(chunk.length)) return void this.#failWith(controller, NO_ROOM())
    this.#bytes += chunk.length
    this.#parts.push(chunk)
    if (this.#form === 'events' && (chunk.includes(LF) || chunk.includes(CR))) this.#sendEvents(controller)
    if (this.#form === 'lines' && chunk.includes(LF)) this.#sendLines(controller)
  }

  onResponseEnd(controller: Control): void {
    if (this.#over) return
    if (this.#form === 'pass' || this.#form === 'none') return void this.#next.onResponseEnd(controller)
    // Trailers may have a digest of the service's bytes.
    controller.rawTrailers = []
    if (this.#form !== 'document') return void this.#endStream(controller)
    const bytes = this.#taken()
    this.#parts = []
    const editing = this.#filtering.held.inTurn(async () => this.#edit(bytes))
    editing.then(
      (text) => void this.#sendDocument(controller, text),
      (err: unknown) => this.#failWith(controller, err),
    )
  }

  /** The rest of a stream: a client drops an unfinished event, so it is not sent; the last line may end with the stream. */
  #endStream(controller: Control): void {
    if (this.#over) return
    if (this.#editing !== null) return void this.#editing.then(() => this.#endStream(controller))
    if (this.#form === 'lines' && this.#bytes > 0) {
      this.#sendLines(controller, true)
      return void this.#endStream(controller)
    }
    this.#release()
    this.#next.onResponseEnd(controller)
  }

  onResponseError(controller: Control, err: Error): void {
    if (this.#over) return
    this.#release()
    this.#over = true
    this.#next.onResponseError(controller, err)
  }

  #edit(bytes: Buffer): string | null | Promise<string | null> {
    try {
      return this.#filtering.filter.edit(UTF8.decode(bytes))
    } catch (err) {
      return Promise.reject(err)
    }
  }

  #sendDocument(controller: Control, text: string | null): void {
    if (this.#over) return
    const { filter, held, whenDone } = this.#filtering
    const body = Buffer.from(text ?? '')
    // The edited body counts until the client has read it, since it stays in memory until then.
    const bytes = Math.max(this.#bytes, body.length)
    if (!held.take(bytes - this.#bytes)) return void this.#failWith(controller, NO_ROOM())
    this.#bytes = 0
    this.#parts = []
    whenDone(() => held.free(bytes))
    const length = ['content-length', String(body.length)]
    controller.rawHeaders = [...rawFields(controller.rawHeaders), ...(filter.fields?.() ?? []), ...length]
    this.#next.onResponseStart(controller, this.#status)
    if (body.length > 0) this.#next.onResponseData(controller, body)
    this.#next.onResponseEnd(controller)
  }

  /** Edits and sends the complete events in order. */
  #sendEvents(controller: Control): void {
    while (this.#editing === null && !this.#over) {
      const event = this.#taken()
      const end = endOfEvent(event)
      if (end === null) return
      this.#drop(end)
      this.#send(controller, this.#editEvent(event.subarray(0, end)), () => this.#sendEvents(controller))
    }
  }

  /** Edits and sends all complete lines together. `isLast`: also the unfinished line at the end. */
  #sendLines(controller: Control, isLast = false): void {
    if (this.#editing !== null) return
    const bytes = this.#taken()
    const end = isLast ? bytes.length : bytes.lastIndexOf(LF) + 1
    if (end === 0) return
    this.#drop(end)
    this.#send(controller, this.#editLines(bytes.subarray(0, end)), () => this.#sendLines(controller))
  }

  async #editLines(bytes: Buffer): Promise<string> {
    const lines = UTF8.decode(bytes).split(/(?<=\n)/)
    const items = lines.filter((line) => !BLANK.test(line))
    const kept = (await this.#filtering.filter.keepLines?.(items)) ?? []
    const passing = kept[Symbol.iterator]()
    return lines.filter((line) => BLANK.test(line) || passing.next().value === true).join('')
  }

  /** Waits for a piece to be edited, sends it, and calls `more` for the pieces after it. */
  #send(controller: Control, edited: string | Promise<string>, more: () => void): void {
    if (typeof edited === 'string') return void this.#pass(controller, edited)
    controller.pause()
    this.#editing = edited.then(
      (text) => {
        if (this.#over) return
        // Resuming may deliver more pieces at once. `#editing` is still set, so they wait until this piece is sent.
        controller.resume()
        this.#pass(controller, text)
        this.#editing = null
        more()
      },
      (err: unknown) => this.#failWith(controller, err),
    )
  }

  #pass(controller: Control, text: string): void {
    if (text !== '') this.#next.onResponseData(controller, Buffer.from(text))
  }

  #drop(end: number): void {
    const [whole = EMPTY] = this.#parts
    this.#parts = [whole.subarray(end)]
    this.#bytes -= end
    this.#filtering.held.free(end)
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
    const write = (edited: string | null): string => (edited === null ? '' : edited === whole ? text : rebuild(edited))
    return editing instanceof Promise ? editing.then(write) : write(editing)
  }

  #release(): void {
    this.#filtering.held.free(this.#bytes)
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

const NO_ROOM = (): FilterError => new FilterError('too many answers are held', 'overloaded')

/** Shadow mode: the client gets the service's answer unchanged, while a filter beside it counts what it would leave out. */
class ShadowedAnswer implements Relay {
  readonly #next: Relay
  readonly #beside: FilteredAnswer
  #seen: Control | null = null

  constructor(next: Relay, filtering: Filtering) {
    this.#next = next
    this.#beside = new FilteredAnswer(NOWHERE, { ...filtering, whenDone: (callback) => callback() })
  }

  onRequestStart(controller: Control): void {
    this.#next.onRequestStart(controller)
  }

  onResponseStart(controller: Control, status: number): void {
    const seen = Object.assign(Object.create(controller), {
      rawHeaders: controller.rawHeaders,
      rawTrailers: [],
      abort() {},
      pause() {},
      resume() {},
    })
    this.#seen = seen
    this.#beside.onResponseStart(seen, status)
    this.#next.onResponseStart(controller, status)
  }

  onResponseData(controller: Control, chunk: Buffer): void {
    if (this.#seen !== null) this.#beside.onResponseData(this.#seen, Buffer.from(chunk))
    this.#next.onResponseData(controller, chunk)
  }

  onResponseEnd(controller: Control): void {
    if (this.#seen !== null) this.#beside.onResponseEnd(this.#seen)
    this.#next.onResponseEnd(controller)
  }

  onResponseError(controller: Control, err: Error): void {
    if (this.#seen !== null) this.#beside.onResponseError(this.#seen, err)
    this.#next.onResponseError(controller, err)
  }
}

const NOWHERE: Relay = {
  onRequestStart() {},
  onResponseStart() {},
  onResponseData() {},
  onResponseEnd() {},
  onResponseError() {},
}

/** The form of the body by its fields. `refused`: a client could read the body in another way, or it is only a part of one. */
function formOf(fields: readonly string[], status: number): AnswerForm | { readonly refused: string } {
  const [type = '', ...others] = valuesOf(fields, 'content-type')
  const coding = firstValue(fields, 'content-encoding') ?? 'identity'
  if (status === PARTIAL) return { refused: 'the answer is a part of one' }
  if (coding.toLowerCase() !== 'identity') return { refused: `the answer has the coding ${coding}` }
  if (others.length > 0) return { refused: 'the answer has two media types' }
  if (namesOtherCharset(type)) return { refused: 'the answer has another charset than UTF-8' }
  const media = mediaTypeOf(type)
  const form = Object.hasOwn(FORMS, media) ? FORMS[media] : media.endsWith('+json') ? 'document' : undefined
  return form ?? { refused: `the answer has the media type ${media}` }
}

const BLANK = /^[ \t\r\n]*$/
const EMPTY = Buffer.alloc(0)
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The fields without those that describe the service's bytes. No cache may give the edited answer to another reader. */
const editedFields = (fields: readonly string[]): string[] => [
  ...fields.filter((_, at) => !OF_BYTES.includes(fields[at & ~1]?.toLowerCase() ?? '')),
  'cache-control',
  'private, no-store',
]

const LF = 0x0a
const CR = 0x0d

/** The index after the blank line that ends the first event; null: no event is complete. */
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
    // A CR at the end may belong to an LF in the next piece.
    if (after > next && (after < bytes.length || bytes[after - 1] !== CR)) return after
    at = next - 1
  }
  return null
}
