/** App manifests: what an application declares. */

export type Manifest = {
  readonly app: string
  readonly audiences: readonly string[]
  readonly permissions: { readonly [key: string]: string }
  readonly roles: { readonly [key: string]: { readonly name: string; readonly permissions: readonly string[] } }
  /** The model in the OpenFGA language, schema 1.1; null: no model. */
  readonly model: string | null
  /**
   * `both`: a client that acts for a person at this app may do what both may, if the person has delegated it. Absent: the client may do all
   * that the person may.
   */
  readonly actors?: 'both'
}
/** A manifest as stored; version 1 is the first. */
export type StoredManifest = Manifest & { readonly version: number }
