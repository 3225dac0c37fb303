/** Configurations of gateways as texts, and places in them. */
export type Source = { readonly file: string; readonly text: string }
export type Place = { readonly file: string; readonly line: number }

/** The input cannot be read as a configuration. `message` begins with the place. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError'
}
