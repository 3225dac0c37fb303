/** How the answer of a service is edited before the client gets it. */

export type AnswerFilter = {
  /** The bound of a document, and of one event. */
  readonly bytesMax: number
  /** The document, or the data of one event, as the client gets it. Throws, or rejects, for what is not of the expected form. */
  readonly edit: (text: string) => string | Promise<string>
}

/** The answer cannot be edited, so that nobody gets it. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
}
