/** Ask: may this subject do this? Shows the reason, the changes behind it, what is missing, and what would change the answer. */

import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { PermissionResult, ReasonStep } from '../../../shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { isObject, typeOf } from '../../../shared/domain/names.ts'
import { existsAsSubject, refusedUnknown } from '../../serve/decisions/answer.ts'
import { asRequestProblem } from '../../serve/http/status.ts'
import { copies, type FormQuestion, personIn, questionText, reasonSentence } from '../answer-texts.ts'
import { changesOf, type FoundChanges } from '../history.ts'
import { SCREEN_LINKS } from '../layout.ts'
import { address, alert, copyable, field, hidden, instant, link, name, problems, verdict } from '../parts.ts'
import {
  actorsMeant,
  appMeant,
  isSupposed,
  NO_APP,
  parametersOf,
  readSubject,
  readSupposed,
  type Supposed,
  subjectText,
  supposedFields,
  supposedOf,
  wordsIn,
} from '../question.ts'
import { didYouMeanPerson, nobody } from '../sections/near-people.ts'
import { table } from '../sections/table.ts'
import { type GrantShown, whyPicture } from '../sections/why-picture.ts'
import type { ConsoleVisit, View } from '../visit.ts'

export type Answered = {
  readonly result: PermissionResult
  /** False if the subject is a person or a client that does not exist. */
  readonly isKnown: boolean
  readonly tookMs: number
  /** The instant from which the answer may differ without any write; null: never. */
  readonly validUntilMs: number | null
}

/** Answers the question. Throws RequestProblem and PdpError. */
export async function answerAsked(visit: ConsoleVisit, asked: FormQuestion, supposed: Supposed): Promise<Answered> {
  await visit.requireScope('decisions:read')
  const { pdp, directory } = visit.deps.management
  const subject = readSubject(asked.subject)
  if (subject === null) throw new TypeError('the subject was checked before')
  const { relation, resource, organization, app, actors, scopes } = asked
  const permissions = [{ relation, resource }]
  const startedMs = performance.now()
  const by = { app: appMeant(app), ...actorsMeant(actors), scopes }
  const question = { organization, subject, permissions, explain: true, ...by, ...readSupposed(supposed) }
  const [exists, decision] = await Promise.all([
    existsAsSubject(directory, subject, organization),
    pdp.decide(question),
  ])
  const [result] = exists ? decision.permissions : permissions.map((check) => refusedUnknown(check, subject, true))
  if (result === undefined) throw new TypeError('a question was not answered')
  return { result, isKnown: exists, tookMs: performance.now() - startedMs, validUntilMs: decision.validUntilMs }
}

export const askedOf = (visit: ConsoleVisit): FormQuestion => ({
  organization: visit.organization ?? '',
  subject: subjectText(visit.query('subject')),
  relation: visit.query('relation').trim(),
  resource: visit.query('resource').trim(),
  app: visit.query('app').trim() || null,
  actors: wordsIn(visit.query('actors')),
  scopes: wordsIn(visit.query('scopes')),
})

export async function showAsk(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('decisions:read')
  const asked = askedOf(visit)
  const supposed = supposedOf(visit)
  const form = await questionForm(visit, asked, supposed)
  if (asked.subject === '' || asked.resource === '')
    return { title: SCREEN_LINKS.ask.title, body: html`${form}${HINT}` }
  const title = asked.relation === '' ? `What is ${personIn(asked.subject)} of ${asked.resource}?` : questionText(asked)
  return { title, body: html`${form}${await answerParts(visit, asked, supposed)}` }
}

const HINT = html`<div class="empty"><p>Ask about a person, such as <code>alice</code> or <code>user:alice</code>; a group's members,
<code>group:staff#member</code>; or a client, <code>service:importer</code>. The relation is one of the model, or a permission
key on <code>app:…</code> or <code>organization:…</code>.</p></div>`

async function questionForm(visit: ConsoleVisit, asked: FormQuestion, supposed: Supposed): Promise<Html> {
  const { organization } = visit
  const type = typeOf(asked.resource)
  const relations =
    organization === null || type === '' ? [] : await visit.deps.management.pdp.relations(organization, type)
  return html`<form method="get" action="/console/ask" class="question">${hidden('org', organization ?? '')}
${field({ name: 'subject', label: 'Subject', value: asked.subject, required: true, suggest: 'subject' })}
${field({ name: 'relation', label: 'Relation or permission', value: asked.relation, among: relations })}
${field({ name: 'resource', label: 'Resource', value: asked.resource, required: true, suggest: 'resource' })}
<button type="submit">Check</button>
${supposedFields(supposed, visit.reading, [
  { name: 'app', label: 'App of the roles', value: asked.app ?? '', hint: `Every app if empty; ${NO_APP}: of no app.` },
  {
    name: 'actors',
    label: 'Clients that act',
    value: asked.actors.join(' '),
    hint: 'By a token of the subject, the last one first.',
  },
  { name: 'scopes', label: 'Scopes of their token', value: asked.scopes.join(' ') },
])}</form>`
}

async function answerParts(visit: ConsoleVisit, asked: FormQuestion, supposed: Supposed): Promise<Html> {
  if (readSubject(asked.subject) === null)
    return alert(
      html`${name(asked.subject)} names no subject. Write <code>type:id</code>, such as <code>user:alice</code>.`,
    )
  if (!isObject(asked.resource))
    return alert(
      html`${name(asked.resource)} names no resource. Write <code>type:id</code>, such as <code>doc:1</code>.`,
    )
  try {
    if (asked.relation === '') return await everyRelation(visit, asked, supposed)
    const answered = await answerAsked(visit, asked, supposed)
    return await answerPage(visit, { asked, supposed, answered })
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code !== 'request_invalid' && code !== 'condition_failed' && code !== 'evaluation_limit') throw err
    return problems(message, issues)
  }
}

/** How many checks one question may have. */
const RELATIONS_MAX = 256

/** The answers for all relations of the resource's type. */
async function everyRelation(visit: ConsoleVisit, asked: FormQuestion, supposed: Supposed): Promise<Html> {
  const { organization, subject: text, resource } = asked
  const { pdp, directory } = visit.deps.management
  const relations = (await pdp.relations(organization, typeOf(resource))).slice(0, RELATIONS_MAX)
  const subject = readSubject(text)
  if (subject === null || relations.length === 0)
    return alert(html`No model gives type ${name(typeOf(resource))} a relation. Name the relation or the permission.`)
  if (!(await existsAsSubject(directory, subject, organization)))
    return alert(html`${nobody(subject)}${await didYouMean(visit, asked, supposed)}`)
  const permissions = relations.map((relation) => ({ relation, resource }))
  const by = { app: appMeant(asked.app), ...actorsMeant(asked.actors), scopes: asked.scopes }
  const decision = await pdp.decide({ organization, subject, permissions, ...by, ...readSupposed(supposed) })
  const rows = decision.permissions.map(({ relation, allowed, error }) => [
    name(relation),
    error === undefined ? verdict(allowed) : html`<span class="denied">? cannot be decided</span>`,
    link(
      address('ask', { org: organization, ...questionParameters({ ...asked, relation }), ...parametersOf(supposed) }),
      html`Why?<span class="for-readers"> ${relation}</span>`,
    ),
  ])
  return table(visit, {
    id: 'relations',
    caption: html`What ${name(personIn(text))} is of ${name(resource)}`,
    columns: ['Relation', 'Answer', 'Ask'],
    rows,
    empty: EMPTY,
  })
}

/** A link with the same question about a person whose id is similar. */
async function didYouMean(visit: ConsoleVisit, asked: FormQuestion, supposed: Supposed): Promise<Html> {
  const subject = readSubject(asked.subject)
  if (subject === null) return EMPTY
  return didYouMeanPerson(visit, subject, (near) =>
    address('ask', {
      org: asked.organization,
      ...questionParameters({ ...asked, subject: near }),
      ...parametersOf(supposed),
    }),
  )
}

type Told = { readonly asked: FormQuestion; readonly supposed: Supposed; readonly answered: Answered }

async function answerPage(visit: ConsoleVisit, { asked, supposed, answered }: Told): Promise<Html> {
  const { result, isKnown, tookMs } = answered
  const { reason } = result
  const { asOfMs = Number.POSITIVE_INFINITY } = readSupposed(supposed)
  const steps = [...(reason?.path ?? []), ...(reason?.reached ?? [])]
  const [found, grants] = await Promise.all([changesOf(visit, steps, asOfMs), grantsOf(visit, steps)])
  const word =
    result.error === undefined ? verdict(result.allowed) : html`<span class="denied">? cannot be decided</span>`
  const watch = address('ask/watch', {
    org: asked.organization,
    ...questionParameters(asked),
    ...parametersOf(supposed),
  })
  const isNow = supposed.asOf === ''
  const subject = readSubject(asked.subject)
  const meant = isKnown ? EMPTY : await didYouMean(visit, asked, supposed)
  return html`<section class="answer ${result.allowed ? 'is-allowed' : 'is-denied'}" aria-labelledby="answer">
<div role="status" class="verdict-line"><h2 id="answer" class="verdict"${isNow ? html` data-watch="${watch}"` : EMPTY}>${word}</h2></div>
<p class="sentence">${isKnown || subject === null ? reasonSentence(asked, result) : nobody(subject)}${meant}</p>${isSupposed(supposed) ? SUPPOSED : EMPTY}
<p class="note">Answered in ${tookMs.toFixed(1)} ms in organization ${name(asked.organization)}.</p></section>
${isKnown ? whyPicture({ subject: asked.subject, result, changes: found.entries, grants }) : EMPTY}
${result.allowed ? pathTable(visit, result, { found, grants }) : isKnown ? missingTable(visit, asked, result) : EMPTY}
<details class="copies"><summary>Copy as test, curl, code</summary>${copies(visit.deps.issuer, { asked, supposed, allowed: result.allowed }).map(({ title, text }) => copyable(title, text))}</details>
<p class="related">${link(address('who', { org: asked.organization, relation: asked.relation, resource: asked.resource, ...parametersOf(supposed) }), 'Who else may?')}
· ${link(address('what', { org: asked.organization, relation: asked.relation, subject: asked.subject, type: typeOf(asked.resource), ...parametersOf(supposed) }), 'On what else?')}</p>`
}

const SUPPOSED = html`<p class="note"><strong>What if:</strong> this answers a supposition. Nothing was written, and nothing is remembered.</p>`
const questionParameters = ({ subject, relation, resource, app, actors, scopes }: FormQuestion) => ({
  subject,
  relation,
  resource,
  app,
  actors: actors.join(' '),
  scopes: scopes.join(' '),
})

function pathTable(
  visit: ConsoleVisit,
  { reason }: PermissionResult,
  { found: { entries, unsearched }, grants }: { readonly found: FoundChanges; readonly grants: Grants },
): Html {
  const rows = (reason?.path ?? []).map((step) => {
    const [[kind, text] = ['', '']] = Object.entries(step)
    const entry = entries.get(text)
    const since = unsearched.get(text)
    const changed =
      entry === undefined
        ? html`<span class="note">${since === undefined ? '–' : link(olderAddress(visit, step, since), `before revision ${since}: search for it`)}</span>`
        : html`${instant(entry.atMs)} by ${name(entry.actor)} ${link(changeAddress(visit, entry), `revision ${entry.revision}`)}`
    return [kind.replace('_', ' '), kind === 'role_grant' ? grantText(grants, text) : name(text), changed]
  })
  return table(visit, {
    id: 'chain',
    isWhole: true,
    caption: 'The chain of grants, from the resource to the subject',
    columns: ['Step', 'What', 'Since'],
    rows,
    empty: html`<p>No grant is part of the answer.</p>`,
  })
}

/** A link to the search of the log, from the revision where the search for the change ended. */
const olderAddress = ({ organization: org }: ConsoleVisit, step: ReasonStep, since: number): string => {
  const until = String(since - 1)
  if ('member' in step)
    return address('changes', {
      org,
      until,
      text: `membership of ${step.member.slice(step.member.lastIndexOf('@') + 1)}`,
    })
  return address('changes', { org, until, text: 'tuple' in step ? step.tuple : '' })
}

function changeAddress({ organization: org }: ConsoleVisit, { log, revision }: JournalEntry): string {
  const until = String(revision)
  return address('changes', log === ENVIRONMENT ? { org, log: 'environment', until } : { org: log, until })
}

/** Grants by their ids. A person who may not read a grant sees only its id. */
type Grants = ReadonlyMap<string, GrantShown & { readonly log: string }>

async function grantsOf(visit: ConsoleVisit, steps: readonly ReasonStep[]): Promise<Grants> {
  const found = new Map<string, GrantShown & { readonly log: string }>()
  for (const step of steps) {
    if (!('role_grant' in step)) continue
    const { role_grant: id } = step
    const [grant] = await visit.deps.management.store.roleGrants({ id }, { after: null, countMax: 1 })
    if (grant === undefined) continue
    const isSeen =
      grant.log === ENVIRONMENT ? visit.mayEverywhere('roles:read') : await visit.mayWithin('roles:read', grant.log)
    if (isSeen) found.set(id, grant)
  }
  return found
}

function grantText(grants: Grants, id: string): Html {
  const grant = grants.get(id)
  if (grant === undefined) return html`a role that was granted where you may not look`
  const where = grant.log.startsWith('#') ? html`everywhere` : html`in ${name(grant.log)}`
  return html`role ${name(grant.role)}${grant.app === null ? EMPTY : html` of app ${name(grant.app)}`} for ${name(grant.subject)} ${where}`
}

function missingTable(visit: ConsoleVisit, asked: FormQuestion, { reason }: PermissionResult): Html {
  const details = (reason?.details ?? []).map((detail) => html`<li>${name(detail)}</li>`)
  const rows = (reason?.missing ?? []).map((tuple) => [
    name(tuple),
    link(address('ask', { org: asked.organization, ...questionParameters(asked), with: tuple }), 'What if?'),
    visit.may('relationships:write')
      ? link(address('relationships', { org: asked.organization, lines: tuple }), 'Write it')
      : EMPTY,
  ])
  const edges = table(visit, {
    id: 'missing',
    isWhole: true,
    caption: 'What is missing: any one of these would allow it',
    columns: ['Relationship', 'Try', 'Do'],
    rows,
    empty: html`<p>No single relationship would allow it.</p>`,
  })
  return html`${details.length === 0 ? EMPTY : html`<ul class="details">${details}</ul>`}${edges}`
}
