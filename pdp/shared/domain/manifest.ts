/** App manifests: what an application declares. */

export type Manifest = {
  readonly app: string
  readonly audiences: readonly string[]
  readonly permissions: { readonly [key: string]: string }
  readonly roles: { readonly [key: string]: { readonly name: string; readonly permissions: readonly string[] } }
  /** OpenFGA language, schema 1.1; null for none. */
  readonly model: string | null
  /**
   * `both`: what a client does for a person at this app is allowed where the person may, the client may, and the person lets it.
   * Absent: what the person may.
   */
  readonly actors?: 'both'
}
/** A manifest as stored; version 1 is the first. */
export type StoredManifest = Manifest & { readonly version: number }
