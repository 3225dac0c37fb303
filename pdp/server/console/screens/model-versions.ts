/** Versions of a manifest: author, time and changes of each, and who would gain or lose access if it were in force again. */

import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import type { Manifest, StoredManifest } from '../../../shared/domain/manifest.ts'
import { RequestProblem } from '../../serve/http/status.ts'
import { readBackwards } from '../journal-backwards.ts'
import { diffOf, isDifferent, shownDiff } from '../line-diff.ts'
import { address, instant, link, name } from '../parts.ts'
import { table } from '../sections/table.ts'
import type { ConsoleVisit } from '../visit.ts'

/** How many versions a page shows. */
const VERSIONS_MAX = 20
/** How many changes of the environment's log are searched for versions. */
const SEARCHED_MAX = 5_000

type Version = { readonly entry: JournalEntry; readonly manifest: Manifest; readonly before: Manifest | null }
type FoundVersions = { readonly versions: readonly Version[]; readonly isWhole: boolean }

/** Versions up to revision `to` of the environment, the latest first. `isWhole` false: there may be earlier ones. */
async function versionsOf(
  visit: ConsoleVisit,
  app: string,
  { to, countMax }: { to: number; countMax: number },
): Promise<FoundVersions> {
  const found: { readonly entry: JournalEntry; readonly manifest: Manifest }[] = []
  let [searched, oldest] = [0, 1]
  for await (const { entries, first } of readBackwards(visit.deps.management.store, { log: ENVIRONMENT, to })) {
    for (const entry of entries)
      if (entry.change.kind === 'manifest' && entry.change.manifest.app === app)
        found.push({ entry, manifest: entry.change.manifest })
    searched += entries.length
    oldest = first
    // One version more, to tell what the last one that is shown changed.
    if (found.length > countMax || searched >= SEARCHED_MAX) break
  }
  const versions = found.slice(0, countMax).map((one, i) => ({ ...one, before: found[i + 1]?.manifest ?? null }))
  return { versions, isWhole: found.length <= countMax && oldest === 1 }
}

/** The table of versions; empty for people who may not read the environment's log. */
export async function versionTable(visit: ConsoleVisit, { app, version }: StoredManifest): Promise<Html> {
  if (!visit.mayEverywhere('audit:read')) return EMPTY
  const { versions, isWhole } = await versionsOf(visit, app, { to: await headOf(visit), countMax: VERSIONS_MAX })
  const rows = versions.map(({ entry, manifest, before }, i) => [
    link(addressOf(visit, app, entry), `version ${version - i}`),
    instant(entry.atMs),
    name(entry.actor),
    before === null && !isWhole ? html`<span class="note">–</span>` : html`${summaryOf(before, manifest)}`,
  ])
  const shown = table(visit, {
    id: 'versions',
    caption: html`Versions of the manifest of ${name(app)}, newest first`,
    columns: ['Version', 'Time', 'By', 'What it changed'],
    rows,
    empty: html`<p class="note">Its latest changes are not in the log any more.</p>`,
  })
  return html`${shown}${isWhole ? EMPTY : html`<p class="note">There may be earlier versions: ${link(address('changes', { org: visit.organization, log: 'environment', text: `manifest of app ${app}` }), 'search the log')}.</p>`}`
}

const headOf = async ({ deps }: ConsoleVisit): Promise<number> =>
  (await deps.management.store.vector([ENVIRONMENT])).logs.get(ENVIRONMENT)?.revision ?? 0

const addressOf = ({ organization: org }: ConsoleVisit, app: string, { revision }: JournalEntry): string =>
  address('model', { org, app, revision: String(revision) })

/** A summary such as `model +3 −1 lines, 1 role changed`. */
function summaryOf(before: Manifest | null, after: Manifest): string {
  if (before === null) return 'the first version'
  const lines = diffOf(before.model ?? '', after.model ?? '').filter(isDifferent)
  const added = lines.filter(({ sign }) => sign === '+').length
  const parts = [
    ...(lines.length === 0 ? [] : [`model +${added} −${lines.length - added} lines`]),
    ...declared('permission', before.permissions, after.permissions),
    ...declared('role', before.roles, after.roles),
    ...(String(before.audiences) === String(after.audiences) ? [] : ['audiences']),
    ...(before.actors === after.actors ? [] : ['actors']),
  ]
  return parts.join(', ') || 'nothing'
}

type Declared = { readonly [key: string]: unknown }
const changedKeys = (before: Declared, after: Declared): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  )

function declared(what: string, before: Declared, after: Declared): readonly string[] {
  const count = changedKeys(before, after).length
  return count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`]
}

/** The version of a revision. Throws RequestProblem if the person may not read it, or the revision has no version of the app. */
export async function versionAt(visit: ConsoleVisit, app: string, revision: string): Promise<Version> {
  if (!visit.mayEverywhere('audit:read'))
    throw new RequestProblem(
      'permission_denied',
      'this needs the permission portcullis:audit:read in the whole environment, from a role of app portcullis',
    )
  const to = /^\d{1,15}$/.test(revision) ? Math.min(Number(revision), await headOf(visit)) : 0
  const [version] = (await versionsOf(visit, app, { to, countMax: 1 })).versions
  if (version === undefined || String(version.entry.revision) !== revision)
    throw new RequestProblem('not_found', `revision ${revision} of the environment wrote no manifest of app ${app}`)
  return version
}

/** `compared`: who would gain and lose access; null: not computed yet. */
export function versionPage(
  visit: ConsoleVisit,
  { entry, manifest, before }: Version,
  { current, compared }: { readonly current: StoredManifest; readonly compared: Html | null },
): Html {
  const { app } = manifest
  const here = addressOf(visit, app, entry)
  const isInForce = (manifest.model ?? '') === (current.model ?? '')
  const again = isInForce
    ? html`<p>This model is in force.</p>`
    : html`${shownDiff(diffOf(current.model ?? '', manifest.model ?? ''), 'From the model in force to this one')}
${compared ?? html`<p class="actions">${link(`${here}&compare=1`, 'Who would gain and who would lose?')}</p>`}`
  return html`<dl class="numbers"><div><dt>Written</dt><dd>${instant(entry.atMs)}</dd></div><div><dt>By</dt><dd>${name(entry.actor)}</dd></div>
<div><dt>Change</dt><dd>${link(address('changes', { org: visit.organization, log: 'environment', until: String(entry.revision) }), `revision ${entry.revision}`)}</dd></div></dl>
<h2>What it changed</h2>${before === null ? html`<p class="note">It is the first version that the log has.</p>` : html`${shownDiff(diffOf(before.model ?? '', manifest.model ?? ''), 'From the version before to this one')}${keysChanged(visit, before, manifest)}`}
<h2>If it were in force again</h2>${again}`
}

function keysChanged(visit: ConsoleVisit, before: Manifest, after: Manifest): Html {
  const rows = (['permissions', 'roles'] as const).flatMap((what) =>
    changedKeys(before[what], after[what]).map((key) => {
      const text = ({ [what]: of }: Manifest): string => (Object.hasOwn(of, key) ? textOf(of[key]) : 'none')
      return [what.slice(0, -1), name(key), name(text(before)), name(text(after))]
    }),
  )
  if (rows.length === 0) return EMPTY
  return table(visit, {
    id: 'permissions',
    caption: 'Permissions and roles',
    columns: ['What', 'Key', 'Before', 'After'],
    rows,
    empty: EMPTY,
  })
}

const textOf = (declared: unknown): string => (typeof declared === 'string' ? declared : JSON.stringify(declared))
