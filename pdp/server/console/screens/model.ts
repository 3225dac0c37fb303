/** Models: an app's text with its issues, its types as a picture and a table, and the effects of another text. */
import { knownModel } from '../../../engine/decide/models/known-models.ts'
import { modelIssues } from '../../../engine/decision-point/compare.ts'
import {
  atLeast,
  type ComparedAccess,
  type Comparison,
  lookedAt,
} from '../../../engine/decision-point/compare-shapes.ts'
import { withModels } from '../../../engine/worker/worker.ts'
import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import { asRequestProblem, RequestProblem } from '../../serve/http/status.ts'
import { picture, typeGraph, typeTable } from '../graph.ts'
import { changedTypes } from '../line-diff.ts'
import { address, alert, field, hidden, link, name, problems, status } from '../parts.ts'
import { table } from '../sections/table.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { versionAt, versionPage, versionTable } from './model-versions.ts'

export async function showModel(visit: ConsoleVisit): Promise<View> {
  const { items } = await visit.api<{ items: readonly StoredManifest[] }>('GET', '/v1/apps?page_size=1000')
  const asked = visit.query('app')
  const chosen =
    asked === ''
      ? (items.find(({ model }) => model !== null) ?? null)
      : (items.find(({ app }) => app === asked) ?? null)
  if (asked !== '' && chosen === null) throw new RequestProblem('not_found', `app ${asked} has no manifest`)
  const revision = visit.query('revision')
  if (chosen !== null && revision !== '') return showVersion(visit, chosen, revision)
  const done =
    visit.query('done') === '' ? EMPTY : status('The new model is in force. Every decision from now on follows it.')
  const apps = table(visit, {
    id: 'apps',
    caption: 'Apps',
    columns: [
      'App',
      { title: 'Version', number: true },
      { title: 'Roles', number: true },
      { title: 'Permissions', number: true },
      'Model',
    ],
    rows: items.map(({ app, version, roles, permissions, model }) => [
      link(address('model', { org: visit.organization, app }), name(app)),
      String(version),
      String(Object.keys(roles).length),
      String(Object.keys(permissions).length),
      model === null ? html`<span class="note">none</span>` : `${model.split('\n').length} lines`,
    ]),
    empty: html`<p>No app is declared yet.</p><pre tabindex="0"><code>portcullis manifest apply APP manifest.yaml</code></pre>`,
  })
  if (chosen === null)
    return {
      title: 'Models',
      body: html`${apps}${items.length > 0 ? html`<div class="empty"><p>No app has a relation model yet: relationships are then what they say themselves.</p></div>` : EMPTY}`,
    }
  return {
    title: `Model of ${chosen.app}`,
    body: html`${done}${apps}${await pictureOf(visit, chosen.model)}${await versionTable(visit, chosen)}${editor(visit, { app: chosen.app, text: chosen.model ?? '' })}`,
  }
}

async function showVersion(visit: ConsoleVisit, current: StoredManifest, revision: string): Promise<View> {
  const { app } = current
  const version = await versionAt(visit, app, revision)
  const text = version.manifest.model ?? ''
  // A bookmark may lead to a version that is in force again: then there is nothing to compare.
  const isCompared = visit.query('compare') === '1' && text !== (current.model ?? '')
  const found = isCompared ? await comparedForm(visit, { current, text }) : null
  return {
    title: `Model of ${app}, revision ${revision}`,
    body: html`${versionPage(visit, version, { current, compared: found })}${editor(visit, { app, text })}<p>${link(address('model', { org: visit.organization, app }), 'Back to the model in force')}</p>`,
  }
}

async function pictureOf(visit: ConsoleVisit, text: string | null): Promise<Html> {
  if (text === null || isNone(text)) return EMPTY
  const model = await withModels(() => knownModel(text))
  return html`<h2>Types</h2>${picture(typeGraph(model))}${typeTable(visit, model)}`
}

function editor(visit: ConsoleVisit, { app, text }: { readonly app: string; readonly text: string }): Html {
  const { organization: org, form } = visit
  const here = address('model', { org, app })
  return html`<section aria-labelledby="model-text"><h2 id="model-text">Text</h2>
<form method="post" action="${here}">${hidden('csrf', visit.csrf)}
${field({ name: 'text', label: 'Model in the OpenFGA language', value: text, lines: Math.min(30, Math.max(8, text.split('\n').length + 1)), checkedAt: here })}
<fieldset><legend>Whose access to compare</legend><div class="fields">
${field({ name: 'type', label: 'Type of the resources', value: form('type') || visit.query('type'), hint: 'Empty: the first type that the change touches. Compared in the chosen organization.' })}
${field({ name: 'relation', label: 'Relation', value: form('relation'), hint: 'Empty: every relation of the type.' })}
${field({ name: 'subject_type', label: 'Type of the subjects', value: form('subject_type') || 'user' })}</div></fieldset>
<button type="submit" name="action" value="compare">Check and compare</button></form></section>
<script type="module" src="/console/assets/editor/editor.js"></script>`
}

/** True for an empty text, which removes the model. */
const isNone = (text: string): boolean => text.trim() === ''

/** The first type that declares relations. */
const firstType = (text: string): string =>
  /^(?:type\s+| {6}"type": ")([^\s"]+)(?:",)?\s*\n\s*(?:relations|"relations": \{$)/m.exec(text)?.[1] ?? ''

export async function actModel(visit: ConsoleVisit): Promise<View> {
  const { form, query, organization: org } = visit
  const app = query('app')
  const current = await visit.api<StoredManifest>('GET', `/v1/apps/${encodeURIComponent(app)}/manifest`)
  const text = form('text').replaceAll('\r\n', '\n')
  const title = `Model of ${app}`
  const found = await problemsIn(text)
  if (form('action') === 'problems')
    return { file: 'problems.json', type: 'application/json', text: JSON.stringify(found) }
  if (found.length > 0) {
    const lines = text.split('\n')
    const placed = found.map(({ line, column, message }) => ({
      place: `line ${line}, column ${column}`,
      message,
      line: lines[line - 1],
    }))
    return {
      title,
      status: 400,
      body: html`${problems('The text is not a model.', placed)}${editor(visit, { app, text })}`,
    }
  }
  if (form('action') === 'apply') return apply(visit, { current, text })
  return {
    title: `${title}: compared`,
    body: html`${await comparedForm(visit, { current, text })}${await pictureOf(visit, text)}${editor(visit, { app, text })}<p>${link(address('model', { org, app }), 'Back to the model in force')}</p>`,
  }
}

async function comparedForm(visit: ConsoleVisit, of: { current: StoredManifest; text: string }): Promise<Html> {
  const { page, isWhole } = await compared(visit, of)
  return html`${page}${applyForm(visit, { ...of, isWhole })}`
}

/** The issues that the parser finds, which would also refuse the model. */
async function problemsIn(
  text: string,
): Promise<readonly { readonly line: number; readonly column: number; readonly message: string }[]> {
  const issues = isNone(text) ? [] : await withModels(() => modelIssues(text))
  return issues.map(({ place, message }) => {
    const [line = 1, column = 1] = place.split(':').map(Number)
    return { line, column, message }
  })
}

/** How many relations are compared: each comparison reads everybody's access. */
const RELATIONS_MAX = 20
const BOUNDS =
  'This is not everything: the comparison ended after three seconds. The command "portcullis compare" goes through all of it.'

type Compared = { readonly page: Html; readonly isWhole: boolean }
const partly = (page: Html): Compared => ({ page, isWhole: false })

/** Compares the relation that is named, or all relations of the type that either text has. */
async function compared(visit: ConsoleVisit, of: { current: StoredManifest; text: string }): Promise<Compared> {
  const { text } = of
  const { app } = of.current
  const { form, organization: org, deps } = visit
  const changed = changedTypes(of.current.model ?? '', text)
  const named = (form('type') || visit.query('type')).trim()
  const type = named || (changed[0] ?? firstType(text))
  const others = changed.filter((one) => one !== type)
  if (org === null || type === '') return partly(alert('Name a type of resources to compare who has access.'))
  const after = isNone(text) ? null : await withModels(() => knownModel(text))
  const before = await deps.management.pdp.relations(org, type)
  const all = [...new Set([...before, ...(after?.get(type)?.keys() ?? [])])].sort()
  const relations = form('relation').trim() === '' ? all : [form('relation').trim()]
  if (relations.length === 0) return partly(alert(html`Neither text has relations on type ${name(type)}.`))
  const parts: Html[] = []
  let isWhole = false
  if (others.length > 0)
    parts.push(
      alert(
        html`Only resources of type ${name(type)} are compared. The change touches other types too: ${joined(others.map(name))}.`,
      ),
    )
  const leftOut = relations.slice(RELATIONS_MAX)
  if (leftOut.length > 0)
    parts.push(
      alert(
        html`This is not everything: of ${String(relations.length)} relations the first ${String(RELATIONS_MAX)} are compared. Name each of the others to compare it: ${joined(leftOut.map(name))}.`,
      ),
    )
  await visit.requireScope('decisions:read')
  const chosen = relations.slice(0, RELATIONS_MAX)
  const subjectType = form('subject_type').trim() || 'user'
  const model = { app, text: isNone(text) ? null : text }
  try {
    const request = { organization: org, relations: chosen, type, subjectType, model }
    const found = await deps.management.pdp.compareAll(request)
    if (found.some(({ next }) => next !== null)) parts.push(alert(BOUNDS))
    isWhole =
      others.length === 0 && relations === all && leftOut.length === 0 && found.every(({ complete }) => complete)
    parts.push(...found.map((one, i) => comparison(visit, chosen[i] ?? '', one)))
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code !== 'request_invalid') throw err
    parts.push(problems(message, issues))
  }
  return { page: html`<h2>Who would gain and who would lose ${name(type)} in ${name(org)}</h2>${parts}`, isWhole }
}

function comparison(visit: ConsoleVisit, relation: string, found: Comparison): Html {
  const { gains, loses, gainsCount, losesCount, complete, resourcesCompared, resourcesCount } = found
  const rows = (sign: string, all: readonly ComparedAccess[]): (readonly (Html | string)[])[] =>
    all.map(({ subject, resource }) => [
      sign,
      name(subject),
      name(resource),
      link(address('ask', { org: visit.organization, subject, relation, resource }), 'Why now?'),
    ])
  const looked = complete ? '' : `; ${lookedAt(resourcesCompared, resourcesCount)}`
  const unchanged = html`<p><strong>${relation}</strong>: ${complete ? 'nobody gains and nobody loses' : 'no gain and no loss was found'}${looked}.</p>`
  const summary = html`${name(relation)}: ${atLeast(losesCount, complete)} would lose, ${atLeast(gainsCount, complete)} would gain${looked}`
  return html`${complete ? EMPTY : alert(html`${name(relation)}: there is more than was compared, so this is not everything.`)}${table(visit, { id: 'effects', caption: summary, columns: ['Effect', 'Subject', 'Resource', 'Ask'], rows: [...rows('− loses', loses), ...rows('+ gains', gains)], empty: unchanged })}`
}

/** `current`: the manifest that the text was compared with. `isWhole`: all was compared; else the person must confirm that they know. */
function applyForm(
  visit: ConsoleVisit,
  { current, text, isWhole }: { current: StoredManifest; text: string; isWhole: boolean },
): Html {
  if (!visit.mayEverywhere('manifest:write')) return EMPTY
  const { app, version } = current
  const here = address('model', { org: visit.organization, app })
  return html`${freshness(visit, here)}<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('text', text)}${hidden('version', String(version))}${isWhole ? hidden('whole', 'yes') : html`<p><label><input type="checkbox" name="whole" value="no" required> Not everything was compared, and I put it in force all the same</label></p>`}
<button type="submit" name="action" value="apply">Put this model in force</button> </form>`
}

async function apply(visit: ConsoleVisit, { current, text }: { current: StoredManifest; text: string }): Promise<View> {
  const { app } = current
  const here = address('model', { org: visit.organization, app })
  const stale = mustSignInAgain(visit, here)
  if (stale !== null) return stale
  const model = isNone(text) ? null : text
  const path = `/v1/apps/${encodeURIComponent(app)}/manifest`
  if (visit.form('whole') === '')
    return {
      title: `Model of ${app}`,
      status: 400,
      body: html`${alert('Nothing was written: not everything was compared. Compare again, and say below the result that you know.')}${editor(visit, { app, text })}`,
    }
  // A form that was sent twice has already written its change.
  if (visit.form('version') !== String(current.version) && current.model !== model)
    return {
      title: `Model of ${app}`,
      status: 409,
      body: html`${alert('Nothing was written: the manifest was changed after you compared. Compare your text with what is in force now.')}${editor(visit, { app, text })}`,
    }
  try {
    await visit.change<StoredManifest>(path, ({ app: _, version, ...manifest }) => {
      if (manifest.model === model) return null
      if (version !== current.version) throw new RequestProblem('precondition_failed', 'the manifest was changed')
      return { ...manifest, model }
    })
    return { goTo: `${here}&done=1` }
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code === 'internal' || code === 'store_unavailable') throw err
    return {
      title: `Model of ${app}`,
      status: 400,
      body: html`${problems(message, issues)}${editor(visit, { app, text })}`,
    }
  }
}
